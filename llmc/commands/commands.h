/* commands.h: the commands beside training: `train_gpt2 NAME ...`. Each takes the words from its name
 * on, and returns the exit code; `train_gpt2 NAME --help` lists its options. One file each: command_plan.c,
 * command_sample.c, command_eval.c, command_verify.c, command_convert.c, command_tokenize.c. */
#ifndef LLMC_COMMANDS_H
#define LLMC_COMMANDS_H

int command_plan(int argc, char **argv);    // how one update is split
int command_sample(int argc, char **argv);  // text from a model
int command_eval(int argc, char **argv);    // its loss on data
int command_verify(int argc, char **argv);  // what a file is, and whether it is complete
int command_convert(int argc, char **argv); // weights from one format to another
int command_tokenize(int argc, char **argv); // text into token shards, and back

/* `train_gpt2 --version` (command_version.c): which version of the source this is, and how it was built. */
int command_version(int argc, char **argv);

#endif
