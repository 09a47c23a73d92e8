/* test_options.c: the command line: every number exactly or refused by name, every option of --help
 * accepted, every value given back as text that means the same. Also number.h. */
#include "command_line.h"
#include "test.h"

#include "../llmc/base/error.h"
#include "../llmc/base/edit_distance.h"
#include "../llmc/base/number.h"
#include "../llmc/settings/option.h"

#include <float.h>
#include <limits.h>

#define REFUSED(text, ...) CHECK_FATAL(EXIT_USAGE, text, PARSE(__VA_ARGS__))

// ---------------------------------------------------------------------------------------------
// Numbers

TEST(integers, "whole numbers are read whole and exactly: 1e4, 10k, 0.5M, both ends of the types") {
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        // clang-format off
        {"0", 0}, {"-0", 0}, {"7", 7}, {"007", 7}, {"-12", -12}, {"1e4", 10000}, {"1E4", 10000},
        {"10k", 10000}, {"0.5M", 500000}, {"1.0", 1}, {"1.50e1", 15}, {"12.5e1", 125},
        {"100e-2", 1}, {"5.", 5}, {".5k", 500}, {"0e99", 0}, {"0e-99", 0}, {"1e+2", 100},
        {"9223372036854775807", INT64_MAX}, {"-9223372036854775807", -INT64_MAX},
        {"9007199254740993", 9007199254740993}, {"9223372036854.775807M", INT64_MAX},
        {"1000000000000000000000e-21", 1},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int64_t value = 77;
        NumberResult result = number_read_i64(good[i].text, &value);
        CHECK(result == NUMBER_OK && value == good[i].value, "%s: %d %lld", good[i].text,
              (int)result, (long long)value);
    }
    uint64_t large = 0;
    CHECK(number_read_u64("18446744073709551615", &large) == NUMBER_OK && large == UINT64_MAX);
    CHECK(number_read_u64("18446744073709551616", &large) == NUMBER_RANGE);
    CHECK(number_read_u64("-1", &large) == NUMBER_RANGE && large == UINT64_MAX);
}

TEST(not_integers,
     "what is not a whole number is classified: malformed, a fraction, out of range") {
    static const struct {
        const char *text;
        NumberResult result;
    } bad[] = {
        // clang-format off
        {"", NUMBER_MALFORMED}, {"abc", NUMBER_MALFORMED}, {"2x", NUMBER_MALFORMED},
        {" 5", NUMBER_MALFORMED}, {"5 ", NUMBER_MALFORMED}, {"+5", NUMBER_MALFORMED},
        {"0x10", NUMBER_MALFORMED}, {"nan", NUMBER_MALFORMED}, {"inf", NUMBER_MALFORMED},
        {"-", NUMBER_MALFORMED}, {".", NUMBER_MALFORMED}, {"-.", NUMBER_MALFORMED},
        {"1.2.3", NUMBER_MALFORMED}, {"1..", NUMBER_MALFORMED}, {"1e", NUMBER_MALFORMED},
        {"1e-", NUMBER_MALFORMED}, {"1e2.5", NUMBER_MALFORMED}, {"e5", NUMBER_MALFORMED},
        {"k", NUMBER_MALFORMED}, {"5K", NUMBER_MALFORMED}, {"5kk", NUMBER_MALFORMED},
        {"1e3k", NUMBER_MALFORMED}, {"1,000", NUMBER_MALFORMED}, {"--5", NUMBER_MALFORMED},
        {"0.5", NUMBER_FRACTION}, {"1e-1", NUMBER_FRACTION}, {"0.0005k", NUMBER_FRACTION},
        {"1e400", NUMBER_RANGE}, {"1e99999999999999999999", NUMBER_RANGE},
        {"9223372036854775808", NUMBER_RANGE}, {"-9223372036854775809", NUMBER_RANGE},
        {"99999999999999999999", NUMBER_RANGE}, {"9223372036854775808k", NUMBER_RANGE},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t value = 77;
        NumberResult result = number_read_i64(bad[i].text, &value);
        CHECK(result == bad[i].result && value == 77, "%s: %d", bad[i].text, (int)result);
    }
}

TEST(reals, "a real is the nearest double, k and M included; overflow and underflow are refused") {
    static const struct {
        const char *text;
        double value;
    } good[] = {
        // clang-format off
        {"6e-4", 6e-4}, {"0.1", 0.1}, {"-0.1", -0.1}, {".5", 0.5}, {"1e4", 1e4}, {"0.3k", 0.3e3},
        {"0.0007M", 0.0007e6}, {"1.7976931348623157e308", DBL_MAX}, {"5e-324", 5e-324}, {"0", 0},
        {"0.000e-999", 0}, {"123456789012345678", 123456789012345678.0},
        // clang-format on
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double value = NAN;
        NumberResult result = number_read_real(good[i].text, &value);
        CHECK(result == NUMBER_OK && value == good[i].value, "%s: %d %.17g", good[i].text,
              (int)result, value);
    }
    double value = 77;
    CHECK(number_read_real("1e400", &value) == NUMBER_RANGE);
    CHECK(number_read_real("-1e400", &value) == NUMBER_RANGE);
    CHECK(number_read_real("1e-400", &value) == NUMBER_RANGE);
    static const char *const bad[] = {"",      "nan", "inf", "-inf", "infinity",
                                      "0x1p3", "1e",  " 1",  "1 ",   "1f"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(number_read_real(bad[i], &value) == NUMBER_MALFORMED, "%s", bad[i]);
    CHECK(value == 77);
}

TEST(written_numbers, "a written real reads back as the same bits, in few digits where they do") {
    char text[NUMBER_CHARS];
    CHECK(strcmp(number_write_real(text, 6e-4), "0.0006") == 0, "%s", text);
    CHECK(strcmp(number_write_real(text, 0.1 + 0.2), "0.30000000000000004") == 0, "%s", text);
    CHECK(strcmp(number_write_real(text, -INFINITY), "-inf") == 0, "%s", text);
    uint64_t bits = 1;
    for (int i = 0; i < 100000; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        double real;
        memcpy(&real, &bits, sizeof real);
        if (isfinite(real)) CHECK(strtod(number_write_real(text, real), NULL) == real, "%s", text);
    }
}

// ---------------------------------------------------------------------------------------------
// Defaults and the words of the command line

TEST(defaults_gpt2, "the defaults of gpt2 are the course's (chapter 27 and its script)") {
    static const char *const names[] = {"gpt2", "gpt2-medium", "gpt2-xl"};
    for (int i = 0; i < 3; i++) {
        Settings s = PARSE("--model", names[i]);
        CHECK(s.batch == 64 && s.total_batch == 524288 && s.steps == 19073 && s.warmup == 715);
        CHECK(s.lr == 6e-4 && s.min_lr == 6e-5 && s.beta1 == 0.9 && s.beta2 == 0.95 &&
              s.eps == 1e-8);
        CHECK(s.weight_decay == 0.1 && s.clip == 1.0 && s.schedule == SCHEDULE_COSINE);
        CHECK(s.val_every == 250 && s.sample_every == 250 && s.seq_len == 0 && s.decay_steps == -1);
    }
}

TEST(defaults_tiny, "without options the tiny model is trained; an option that was not given has its sentinel") {
    Settings s = PARSE();
    CHECK(strcmp(s.model, "tiny") == 0 && s.total_batch % 64 == 0 && s.steps > 0 &&
          s.warmup <= s.steps);
    CHECK(s.layers == 0 && s.heads == 0 && s.channels == 0 && s.seq_len == 0 && s.vocab == 0);
    CHECK(s.data.count == 0 && s.val.count == 0 && s.val_fraction == 0.1 && s.shuffle &&
          s.given == 0);
    CHECK(s.epochs == 0 && s.threads == 0 && s.decay_steps == -1 && s.nonfinite_skips == 0);
    CHECK(!s.recompute && s.exact && !s.overwrite && !s.out && s.min_lr <= s.lr);
    CHECK(PARSE("--model", "some/path").batch == s.batch);
}

TEST(forms, "--name value, --name=value, switches both ways; the last one counts; lists add up") {
    Settings s =
        PARSE("--steps", "10", "--lr=2e-3", "--no-shuffle", "--exact", "--steps=20", "--data", "a",
              "--data=b", "--out=--odd", "--seed=18446744073709551615", "--exact", "--no-exact",
              "--schedule", "wsd", "--nonfinite=skip:3", "--batch=0.5k");
    CHECK(s.steps == 20 && s.lr == 2e-3 && !s.shuffle && !s.exact && s.batch == 500);
    CHECK(s.data.count == 2 && strcmp(s.data.items[0], "a") == 0 &&
          strcmp(s.data.items[1], "b") == 0);
    CHECK(strcmp(s.out, "--odd") == 0 && s.seed == UINT64_MAX);
    CHECK(s.schedule == SCHEDULE_WSD && s.nonfinite_skips == 3);
    CHECK(PARSE("--nonfinite", "skip:3", "--nonfinite", "stop").nonfinite_skips == 0);
    free(s.data.items);
}

TEST(min_lr, "--min-lr is a tenth of a given --lr, and may not exceed it, whichever was given") {
    CHECK(PARSE("--lr", "6e-4").min_lr == 6e-5);
    CHECK(PARSE("--lr", "3e-4").min_lr == 3e-5);
    CHECK(PARSE("--model", "gpt2", "--lr", "1e-3").min_lr == 1e-4);
    CHECK(PARSE("--lr", "6e-4", "--min-lr", "0").min_lr == 0);
    CHECK(PARSE("--min-lr", "5e-4").lr == 1e-3);
    CHECK(PARSE("--lr=1e-5", "--min-lr=1e-5").min_lr == 1e-5);
    REFUSED("--min-lr 1 is above --lr 0.001 (the default)", "--min-lr", "1");
    REFUSED("--min-lr 0.02 is above --lr 0.01;", "--min-lr", "0.02", "--lr", "0.01");
}

TEST(epochs, "--epochs stands for --steps; both at once are refused") {
    Settings s = PARSE("--epochs", "2.5");
    CHECK(s.epochs == 2.5 && s.steps == -1);
    REFUSED("--epochs 2 and --steps 5", "--epochs", "2", "--steps", "5");
    REFUSED("--epochs '0' is out of range; it takes a number above 0", "--epochs", "0");
}

TEST(refused_values,
     "a value that cannot be used exactly is refused: option, value, range, remedy") {
    REFUSED("--steps '0' is out of range; it takes a whole number from 1 to 1e15, such as 1000",
            "--steps", "0");
    REFUSED("--steps '-1' is out of range", "--steps", "-1");
    REFUSED("--steps '2x' is not a number; it takes a whole number", "--steps", "2x");
    REFUSED("--steps '0.5' is not a whole number", "--steps", "0.5");
    REFUSED("--steps '' is empty", "--steps", "");
    REFUSED("--steps ' 5' is not a number", "--steps", " 5");
    REFUSED("--steps '1e400' is out of range", "--steps=1e400");
    REFUSED("--layers '0' is out of range; it takes a whole number from 1 to 2147483647",
            "--layers", "0");
    REFUSED("--vocab '2147483648' is out of range", "--vocab", "2147483648");
    REFUSED("--lr 'nan' is not a number; it takes a number above 0, such as 1e-3", "--lr", "nan");
    REFUSED("--lr 'inf' is not a number", "--lr", "inf");
    REFUSED("--lr '0' is out of range", "--lr", "0");
    REFUSED("--lr '1e-400' is out of range", "--lr", "1e-400");
    REFUSED("--beta1 '1' is out of range; it takes a number from 0 to below 1", "--beta1", "1");
    REFUSED("--val-fraction '1' is out of range", "--val-fraction", "1");
    REFUSED("--val-fraction '-0.1' is out of range", "--val-fraction", "-0.1");
    REFUSED("--seed '-1' is out of range", "--seed", "-1");
    REFUSED("--schedule 'cosin' is unknown; it takes cosine, linear, constant or wsd",
            "--schedule", "cosin");
    REFUSED("--nonfinite 'skip' is neither", "--nonfinite", "skip");
    REFUSED("--nonfinite 'skip:0' is out of range", "--nonfinite", "skip:0");
    REFUSED("--nonfinite 'skip:' is not a number", "--nonfinite", "skip:");
    REFUSED("--steps '1?2?[K' is not a number", "--steps", "1\n2\033[K"); // still one line
    REFUSED("--out '' is empty", "--out=");
    REFUSED("--data '' is empty", "--data", "");
}

TEST(refused_words,
     "unknown, misspelt, abbreviated or misplaced words are refused with the nearest name") {
    REFUSED("unknown option --bacth; did you mean --batch?", "--bacth", "4");
    REFUSED("unknown option --btch=4; did you mean --batch?", "--btch=4");
    REFUSED("unknown option --bat; did you mean --batch?", "--bat", "4");
    REFUSED("unknown option -batch; did you mean --batch?", "-batch", "4");
    REFUSED("unknown option --batch_size; did you mean --batch?", "--batch_size", "4");
    REFUSED("unknown option --max-batch; did you mean --batch?", "--max-batch", "4");
    REFUSED("unknown option --min_lr; did you mean --min-lr?", "--min_lr", "0");
    REFUSED("unknown option --warmpu; did you mean --warmup?", "--warmpu", "4");
    REFUSED("unknown option --no-shufle; did you mean --shuffle?", "--no-shufle");
    REFUSED("unknown option --no-steps; did you mean --steps?", "--no-steps");
    REFUSED("unknown option --xyzzy; --help lists", "--xyzzy");
    REFUSED("unknown option -B; --help lists", "-B", "4");
    REFUSED("unknown option ---; --help lists", "---");
    REFUSED("--steps has no value; it takes a whole number", "--steps");
    REFUSED("--steps has no value", "--steps", "--lr", "1");
    REFUSED("--exact=1: a switch takes no value; write --exact or --no-exact", "--exact=1");
    REFUSED("'true' after --exact does not belong to an option", "--exact", "true");
    REFUSED("'4' after 8 does not belong to an option", "--batch", "8", "4");
    REFUSED("'train.txt' does not belong to an option", "train.txt");
    REFUSED("'--' does not belong to an option", "--");
    REFUSED("'-' does not belong to an option", "-");
    REFUSED("'' does not belong to an option", "");
    char name[200] = "--";
    memset(name + 2, 'a',
           150); // longer than any option: no spelling to compare, and cut in the message
    REFUSED("unknown option --aaaaaaaa", name);
}

TEST(spelling, "the distance of spellings counts letters added, left out, changed, and swapped") {
    CHECK(edit_distance("kitten", "sitting") == 3 && edit_distance("", "abc") == 3);
    CHECK(edit_distance("bacth", "batch") == 1 && edit_distance("abcd", "badc") == 2);
    CHECK(edit_distance("same", "same") == 0 && edit_distance("abc", "") == 3);
}

TEST(misspelt_all, "every long name with its last two letters swapped is recognised") {
    for (int i = 0; i < option_count; i++) {
        char word[64], wanted[64];
        size_t last = strlen(option_table[i].name) + 1; // in word
        snprintf(word, sizeof word, "--%s", option_table[i].name);
        snprintf(wanted, sizeof wanted, "did you mean --%s?", option_table[i].name);
        if (last < 7 || word[last] == word[last - 1])
            continue; // several short names may be equally near
        char swap = word[last];
        word[last] = word[last - 1], word[last - 1] = swap;
        REFUSED(wanted, word, "1");
    }
}

// ---------------------------------------------------------------------------------------------
// --help and the way back

/* The text of --help, to be freed. */
static char *help_text(void) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    options_help(out);
    fclose(out);
    return text;
}

TEST(help_fits,
     "no line of --help is longer than 100 columns or ends in a blank; usage comes first") {
    char *text = help_text();
    CHECK(strncmp(text, "Usage: train_gpt2", 17) == 0);
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        CHECK(end - line <= 100, "%.*s", (int)(end - line), line);
        CHECK(end == line || end[-1] != ' ', "%.*s", (int)(end - line), line);
    }
    free(text);
    CHECK_FATAL(0, "", (fclose(stdout), PARSE("--help"), _exit(9)));
    CHECK_FATAL(0, "", (fclose(stdout), PARSE("--steps", "3", "-h"), _exit(9)));
}

/* A value that each kind of option takes, and that is not its default. */
static const char *some_value(const Option *option) {
    static char word[OPTION_WORD_CHARS];
    switch (option->type) {
    case OPTION_INTEGER:
    case OPTION_SEED:
        return "17";
    case OPTION_REAL:
        return option->range.or_zero ? "1234.567" : "0.00001234567";
    case OPTION_CHOICE:
        return option_choice(word, &option->range, 1);
    case OPTION_NONFINITE:
        return "skip:4";
    default:
        return "a name";
    }
}

typedef struct {
    const char *name;
    char value[200];
    bool quoted, given;
    int visits;
} Seen;

static void see(void *context, const char *name, const char *value, bool quoted, bool given) {
    Seen *seen = context;
    if (strcmp(name, seen->name) != 0) return;
    snprintf(seen->value, sizeof seen->value, "%s", value ? value : "(not set)");
    seen->quoted = quoted, seen->given = given, seen->visits++;
}

static Seen seen_of(const Settings *settings, const char *name) {
    Seen seen = {.name = name};
    settings_each(settings, see, &seen);
    return seen;
}

TEST(help_lists_all, "every option that --help lists is accepted and given back as it was set") {
    char *text = help_text();
    int listed = 0;
    for (char *at = text; (at = strstr(at, "\n  --")); at++) {
        char name[64] = "", word[80];
        bool is_switch = strncmp(at + 5, "[no-]", 5) == 0;
        sscanf(at + (is_switch ? 10 : 5), "%60[a-z0-9-]", name);
        const Option *option = NULL;
        for (int i = 0; i < option_count; i++)
            if (strcmp(option_table[i].name, name) == 0) option = &option_table[i];
        CHECK(option && is_switch == (option->type == OPTION_SWITCH), "--%s", name);
        if (!option) continue;
        listed++;
        snprintf(word, sizeof word, "--%s", name);
        Settings s = is_switch ? PARSE(word) : PARSE("--lr", "1", word, some_value(option));
        Seen seen = seen_of(&s, name);
        const char *wanted = is_switch ? "true" : some_value(option);
        bool same = seen.quoted || is_switch ? strcmp(seen.value, wanted) == 0
                                             : strtod(seen.value, NULL) == strtod(wanted, NULL);
        CHECK(same && seen.given && seen.visits == 1, "--%s %s came back as %s", name, wanted,
              seen.value);
        snprintf(word, sizeof word, "--no-%s", name);
        if (is_switch) s = PARSE(word);
        CHECK(!is_switch || strcmp(seen_of(&s, name).value, "false") == 0, "%s", word);
        free(s.data.items);
        free(s.val.items);
    }
    CHECK(listed == option_count, "%d of %d listed", listed, option_count);
    free(text);
}

/* Puts every set option on a new command line. */
typedef struct {
    char *words[2 * 64 + 2];
    int count;
} Line;

static void put(void *context, const char *name, const char *value, bool quoted, bool given) {
    Line *line = context;
    char word[300];
    (void)quoted, (void)given;
    if (!value || strcmp(name, "epochs") == 0) return;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        snprintf(word, sizeof word, "--%s%s", *value == 't' ? "" : "no-", name);
    else
        snprintf(word, sizeof word, "--%s=%s", name, value);
    line->words[line->count++] = strdup(word);
}

TEST(round_trip, "the settings written as options are the same settings, to the bit") {
    Settings a =
        PARSE("--model", "gpt2", "--lr", "0.00012345678901234567", "--eps", "3e-9", "--data", "x");
    Line line = {.words = {strdup("train_gpt2")}, .count = 1};
    settings_each(&a, put, &line);
    Settings b = options_parse(line.count, line.words);
    CHECK(b.lr == a.lr && b.min_lr == a.min_lr && b.eps == a.eps && b.beta2 == a.beta2);
    CHECK(b.steps == a.steps && b.seed == a.seed && b.batch == a.batch && b.warmup == a.warmup);
    CHECK(b.layers == 0 && b.decay_steps == -1 && b.threads == 0 && b.shuffle == a.shuffle);
    CHECK(strcmp(b.model, "gpt2") == 0 && b.data.count == 1 && strcmp(b.data.items[0], "x") == 0);
    for (int i = 0; i < option_count; i++) {
        Seen one = seen_of(&a, option_table[i].name), two = seen_of(&b, option_table[i].name);
        CHECK(strcmp(one.value, two.value) == 0, "--%s: %s, %s", one.name, one.value, two.value);
    }
    for (int i = 0; i < line.count; i++) free(line.words[i]);
    free(a.data.items);
    free(b.data.items);
}

TEST(lists_written, "a list is written with its items divided by a comma and a blank") {
    Settings s = PARSE("--data", "a", "--data", "b c", "--data", "d");
    Seen seen = seen_of(&s, "data");
    CHECK(strcmp(seen.value, "a, b c, d") == 0, "%s", seen.value);
    free(s.data.items);
}

TEST(zero_timeouts, "0 is a timeout although the least other one is 1; what lies between is refused") {
    static const char *const names[] = {"--rank-timeout", "--hang-timeout"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Settings s = PARSE(names[i], "0");
        CHECK(strcmp(seen_of(&s, names[i] + 2).value, "0") == 0, "%s", names[i]);
        REFUSED("0 or from 1 to 1000000", names[i], "0.5");
        REFUSED("0 or from 1 to 1000000", names[i], "-1");
    }
}

TEST(defaults_in_range, "both defaults of every option are values that the option itself takes") {
    for (int i = 0; i < option_count; i++) {
        const Option *option = &option_table[i];
        char word[200];
        CHECK(!option->tiny == !option->gpt2, "--%s", option->name);
        for (int family = 0; family < 2 && option->tiny && option->type != OPTION_SWITCH;
             family++) {
            snprintf(word, sizeof word, "--%s=%s", option->name,
                     family ? option->gpt2 : option->tiny);
            Settings s = PARSE(word, "--lr=1");
            CHECK(s.given >> i & 1, "%s", word);
        }
    }
}

TEST(intervals_off, "0 turns every interval off, and the other options that say so") {
    static const char *const names[] = {"--val-every",     "--sample-every", "--log-every",
                                        "--sample-tokens", "--top-k",        "--clip",
                                        "--warmup",        "--weight-decay"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        Settings s = PARSE(names[i], "0");
        CHECK(strcmp(seen_of(&s, names[i] + 2).value, "0") == 0, "%s", names[i]);
    }
}

int main(int argc, char **argv) { return test_main(argc, argv); }
