/* choose_tokenizer.c: which tokenizer a model has: the one that the user names, else the one beside its weights, else
 * the one that its vocabulary's size implies. */
#include "choose_tokenizer.h"

#include "../base/error.h"

// GPT-2 has 50,257 ids; 50,304 is the next multiple of 128, to which its vocabulary is often padded.
enum { BYTES = 256, GPT2 = 50257, GPT2_PADDED = 50304 };

const char *tokenizer_of_vocab(int vocab) {
    if (vocab == BYTES) return "bytes";
    return vocab >= GPT2 && vocab <= GPT2_PADDED ? "gpt2" : NULL;
}

Tokenizer *choose_tokenizer(const char *named, const char *weights, int vocab) {
    // A vocabulary of 256 implies bytes; 50,257 to 50,304 imply GPT-2's tokenizer; any other size implies nothing.
    const char *implied = tokenizer_of_vocab(vocab);
    if (named) {
        Tokenizer *tokenizer = tokenizer_open(named);
        // A smaller tokenizer is accepted: the model then has rows for ids that no text gives. A larger one would
        // give ids without a row.
        if (tokenizer_vocab(tokenizer) > vocab)
            fatal(EXIT_USAGE, "--tokenizer %s has %d tokens, but the model's vocabulary is %d",
                  named, tokenizer_vocab(tokenizer), vocab);
        return tokenizer;
    }
    if (weights && tokenizer_is_in(weights)) return tokenizer_open(weights);
    return implied ? tokenizer_open(implied) : NULL;
}
