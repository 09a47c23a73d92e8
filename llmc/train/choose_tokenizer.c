/* choose_tokenizer.c: which tokenizer a model has: the one that the user names, else the one beside its weights, else
 * the one that its vocabulary's size implies. */
#include "choose_tokenizer.h"

#include "../base/error.h"

enum { BYTES = 256, GPT2 = 50257, GPT2_PADDED = 50304 };

const char *tokenizer_of_vocab(int vocab) {
    if (vocab == BYTES) return "bytes";
    return vocab >= GPT2 && vocab <= GPT2_PADDED ? "gpt2" : NULL;
}

Tokenizer *choose_tokenizer(const char *named, const char *weights, int vocab) {
    const char *implied = tokenizer_of_vocab(vocab);
    if (named) {
        Tokenizer *tokenizer = tokenizer_open(named);
        if (tokenizer_vocab(tokenizer) > vocab)
            fatal(EXIT_USAGE, "--tokenizer %s has %d tokens, but the model's vocabulary is %d",
                  named, tokenizer_vocab(tokenizer), vocab);
        return tokenizer;
    }
    if (weights && tokenizer_is_in(weights)) return tokenizer_open(weights);
    return implied ? tokenizer_open(implied) : NULL;
}
