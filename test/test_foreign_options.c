/* test_foreign_options.c: what people type who come from llm.c, nanoGPT or other trainers is understood, or
 * refused with the way to do it here. */
#include "command_line.h"
#include "test.h"

#include "../llmc/base/error.h"
#include "../llmc/settings/foreign_options.h"

#define REFUSED(text, ...) CHECK_FATAL(EXIT_USAGE, text, PARSE(__VA_ARGS__))

TEST(llmc_run, "llm.c's command line for the 124M reproduction means here what it means there") {
    Settings s = PARSE("-i", "train_*.bin", "-j", "val_*.bin", "-o", "log124M", "-v", "250", "-s",
                       "20000", "-g", "144", "-b", "64", "-t", "1024", "-d", "524288", "-r", "0",
                       "-c", "0.1", "-l", "0.0006", "-q", "0.0", "-u", "700", "-n", "5000", "-y",
                       "1", "-e", "d12", "-x", "18865", "-z", "0", "-h", "0");
    CHECK(s.data.count == 1 && strcmp(s.data.items[0], "train_*.bin") == 0);
    CHECK(s.val.count == 1 && strcmp(s.val.items[0], "val_*.bin") == 0);
    CHECK(strcmp(s.out, "log124M") == 0 && strcmp(s.model, "gpt2") == 0 &&
          strcmp(s.resume, "auto") == 0);
    CHECK(s.val_every == 250 && s.sample_every == 20000 && s.sample_tokens == 144 &&
          s.save_every == 5000);
    CHECK(s.batch == 64 && s.seq_len == 1024 && s.total_batch == 524288 && s.steps == 18865 &&
          !s.recompute);
    CHECK(s.weight_decay == 0.1 && s.lr == 6e-4 && s.min_lr == 0 && s.warmup == 700 &&
          s.beta2 == 0.95);
    settings_free(&s);
}

TEST(llmc_values,
     "values of llm.c's options: depths, -1 for one epoch, shares of the learning rate") {
    Settings s = PARSE("-e", "d6", "-x", "-1", "-l", "6e-4", "-q", "0.1");
    CHECK(s.layers == 6 && s.heads == 6 && s.channels == 384 && s.lr == 6e-4 && s.min_lr == 6e-5);
    CHECK(s.epochs == 1 && s.steps == -1);
    CHECK(strcmp(PARSE("-e", "d48").model, "gpt2-xl") == 0);
    CHECK(strcmp(PARSE("-e", "gpt2_124M_bf16.bin").model, "gpt2_124M_bf16.bin") == 0);
    CHECK(PARSE("-q", "0.5", "--lr", "1e-2").min_lr == 5e-3 &&
          PARSE("-q", "1", "--lr=1e-2").min_lr == 1e-2);
    CHECK(PARSE("-r", "1").recompute && PARSE("-k", "linear").schedule == SCHEDULE_LINEAR);
    CHECK(strcmp(PARSE("-h", "1").hellaswag, "dev/data/hellaswag/hellaswag_val.bin") == 0);
    CHECK(PARSE("-nk", "3").keep == 3 && strcmp(PARSE("-y", "0").resume, "never") == 0);
    CHECK(PARSE("-w", "1", "-f", "0", "-a", "0", "-sl", "0", "-sg", "0.0", "-lg", "-1", "-nm", "0",
                "-pn", "1")
              .steps == PARSE().steps);
}

TEST(llmc_said, "the long form is said once, in one line") {
    char *text;
    size_t size;
    FILE *real = stdout;
    stdout = open_memstream(&text, &size);
    PARSE("-l", "1e-3", "-e", "d12", "-q", "0.1", "-z", "0");
    PARSE("--lr", "1e-3");
    fclose(stdout);
    stdout = real;
    static const char wanted[] =
        "-l is --lr here, -e d12 is --model gpt2 here, -q is --min-lr 0.0001 here, "
        "-z 0 is always so here; ";
    CHECK(strncmp(text, wanted, sizeof wanted - 1) == 0, "%s", text);
    CHECK(strchr(text, '\n') == text + size - 1, "%s", text);
    free(text);
}

TEST(llmc_refused,
     "what has no counterpart is refused with the way to do it here; -h alone asks for help") {
    REFUSED("-z 1 (of llm.c) has no counterpart: every rank keeps the whole optimizer state", "-z",
            "1");
    REFUSED("-a 1 (of llm.c) has no counterpart: to overfit one batch", "-a", "1");
    REFUSED("-w 0 (of llm.c) has no counterpart: master weights", "-w", "0");
    REFUSED("-f 1 (of llm.c) has no counterpart", "-f", "1");
    REFUSED("-m 20 (of llm.c) has no counterpart: give --val-tokens", "-m", "20");
    REFUSED("-sg 5 (of llm.c) has no counterpart", "-sg", "5");
    REFUSED("-pn 8 (of llm.c) has no counterpart: ranks are started by mpirun", "-pn", "8");
    REFUSED("-q 0.1 is a share of the learning rate: give -l", "-q", "0.1");
    REFUSED("-y 2: llm.c gives it no such value", "-y", "2");
    REFUSED("--lr 'abc' is not a number", "-l", "abc");
    REFUSED("-l has no value", "-l");
    REFUSED("-l has no value", "-l", "--steps", "3");
    REFUSED("unknown option -Z; --help lists", "-Z", "1");
    CHECK_FATAL(0, "", (fclose(stdout), PARSE("-h"), _exit(9)));
}

TEST(hints, "names of other trainers, and _ for -, are refused with the name they have here") {
    REFUSED("unknown option --n_layer=4; did you mean --layers=4?", "--n_layer=4");
    REFUSED("unknown option --n_embd; did you mean --channels?", "--n_embd", "64");
    REFUSED("unknown option --max_iters=2000; did you mean --steps=2000?", "--max_iters=2000");
    REFUSED("unknown option --block_size=64; did you mean --seq-len=64?", "--block_size=64");
    REFUSED("unknown option --learning_rate=1e-3; did you mean --lr=1e-3?", "--learning_rate=1e-3");
    REFUSED("unknown option --eval-interval=5; did you mean --val-every=5?", "--eval-interval=5");
    REFUSED("unknown option --weight_decay=0; did you mean --weight-decay=0?", "--weight_decay=0");
    REFUSED("unknown option --gradient_accumulation_steps=5; --total-batch N sets",
            "--gradient_accumulation_steps=5");
    REFUSED("unknown option --device=cpu; train_gpt2 runs on the CPU", "--device=cpu");
    REFUSED("unknown option --compile=False; the kernels are compiled", "--compile=False");
    REFUSED("unknown option --dropout=0.0; there is no dropout", "--dropout=0.0");
    REFUSED("unknown option --overwrite_output_dir=True; did you mean --overwrite?",
            "--overwrite_output_dir=True");
}

TEST(hints_lead,
     "every option that a hint names is there, and no option of ours is refused as another's") {
    static const char *const names[] = {"layers", "batch", "lr",    "data",
                                        "out",    "steps", "model", "val"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *hint = foreign_hint(&train_options, 1, (char *[]){(char *)names[i]});
        CHECK(hint && strstr(hint, names[i]), "%s", names[i]); // itself
    }
    CHECK(!foreign_hint(&train_options, 1, (char *[]){"--xyzzy"}));
    REFUSED("did you mean --layers=4? And --max_iters is --steps=2000, --block_size is "
            "--seq-len=64 (--help",
            "--lr", "1", "--n_layer=4", "--dropout=0", "--max_iters=2000", "--steps", "7",
            "--block_size=64");
}

int main(int argc, char **argv) { return test_main(argc, argv); }
