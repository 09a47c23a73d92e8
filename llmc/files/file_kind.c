/* file_kind.c: see file_kind.h. The magic numbers are those that the formats' documents give. */
#include "file_kind.h"

#include <string.h>

// What a user can do, for the kinds that share an answer.
static const char token_data[] = "give token data or text";
static const char unpack[] = "unpack it first";
static const char save_weights[] =
    "give safetensors: model.save_pretrained(DIR) of Hugging Face's transformers writes them";
static const char give_weights[] = "give a Hugging Face directory, a checkpoint or an llm.c model";
static const char text_first[] = "write its text into a .txt file, or tokenize it";
static const char to_utf8[] = "convert it to UTF-8 (iconv)";
static const char fetch_again[] = "fetch it again";

// ---- by the first bytes -----------------------------------------------------------------------

// Each row: the byte at which the magic number stands, its length, the number itself, and the kind with its advice for
// places that expect data and for those that expect weights. Most numbers stand at byte 0. A bzip2 file begins with BZh
// and the digit of its block size, so the constant bytes are those of the first block, at 4. A tar archive begins with
// a file name of 100 bytes; its "ustar" is at 257. A safetensors file begins with the header's length in 8 bytes: for a
// header of less than 4 GiB the upper four are 0, and the JSON follows. The pointer of Git LFS must stay last:
// lfs_pointer relies on it.
static const struct {
    size_t offset, length;
    const char *start;
    FileKind kind;
} magics[] = {
    {0, 3, "\x1f\x8b\x08", {"gzip-compressed", "unpack it (gunzip)", "unpack it (gunzip)"}},
    {0, 4, "\x28\xb5\x2f\xfd", {"zstd-compressed", "unpack it (unzstd)", "unpack it (unzstd)"}},
    {0, 6, "\3757zXZ\0", {"xz-compressed", "unpack it (unxz)", "unpack it (unxz)"}},
    {4, 6, "1AY&SY", {"bzip2-compressed", "unpack it (bunzip2)", "unpack it (bunzip2)"}},
    {0, 4, "\x04\x22\x4d\x18", {"lz4-compressed", "unpack it (unlz4)", "unpack it (unlz4)"}},
    {0, 6, "7z\xbc\xaf\x27\x1c", {"a 7-Zip archive", unpack, unpack}},
    {257, 5, "ustar", {"a tar archive", "unpack it (tar xf)", "unpack it (tar xf)"}},
    {0,
     4,
     "PK\3\4",
     {"a zip archive (PyTorch's .pt and .bin are such)", "unpack it, or give token data",
      save_weights}},
    {0, 8, "\x80\2\x8a\x0a\x6c\xfc\x9c\x46", {"a PyTorch pickle", "give token data", save_weights}},
    {0, 3, "\x80\4\x95", {"a Python pickle", token_data, save_weights}},
    {0, 3, "\x80\5\x95", {"a Python pickle", token_data, save_weights}},
    {0, 4, "GGUF", {"a GGUF model (llama.cpp's)", token_data, save_weights}},
    {0, 4, "FUGG", {"a byte-swapped GGUF model (llama.cpp's)", token_data, save_weights}},
    {0, 4, "lmgg", {"a ggml model", token_data, save_weights}},
    {0, 4, "fmgg", {"a ggml model", token_data, save_weights}},
    {0, 4, "tjgg", {"a ggml model", token_data, save_weights}},
    {0, 4, "algg", {"a ggml adapter", token_data, save_weights}},
    {0, 8, "\x89HDF\r\n\x1a\n", {"an HDF5 file", token_data, save_weights}},
    {4,
     6,
     "\0\0\0\0{\"",
     {"a safetensors file (weights)", "give token data", "give its directory"}},
    {0, 4, "PAR1", {"a Parquet table", text_first, give_weights}},
    {0, 6, "ARROW1", {"an Arrow table", text_first, give_weights}},
    {0, 8, "\xff\xff\xff\xff\x10\0\0\0", {"an Arrow stream", text_first, give_weights}},
    {0, 16, "SQLite format 3\0", {"an SQLite database", text_first, give_weights}},
    {0, 9, "MMIDIDX\0\0", {"an index of Megatron's", "give the .bin file beside it", give_weights}},
    {0, 7, "\x93NUMPY", {"an .npy array", "write it again: its start is damaged", give_weights}},
    {0, 5, "%PDF-", {"a PDF", "extract its text first", give_weights}},
    {0, 4, "\x89PNG", {"a picture", token_data, give_weights}},
    {0, 3, "\xff\xd8\xff", {"a picture", token_data, give_weights}},
    {0, 4, "\177ELF", {"a program", token_data, give_weights}},
    {0, 2, "\xff\xfe", {"UTF-16 text", to_utf8, give_weights}},
    {0, 2, "\xfe\xff", {"UTF-16 text", to_utf8, give_weights}},
    {0,
     23,
     "version https://git-lfs",
     {"a Git LFS pointer, not the data", "fetch it (git lfs pull)", "fetch it (git lfs pull)"}},
};

static const void *const lfs_pointer = &magics[sizeof magics / sizeof *magics - 1]; // which is text

// ---- llm.c's files ----------------------------------------------------------------------------

// llm.c's magic numbers are dates, yyyymmdd as a decimal number: 20240326 is 26 March 2024.
enum { FIRST_DATE = 20240000, LAST_DATE = 20250000 };

// Each file has two kinds: one in our byte order, and one with each number's four bytes reversed, as a big-endian
// machine writes it. Reversed, 20240326 = 0x0134D7C6 reads as 0xC6D73401.
static const struct {
    uint32_t magic;
    FileKind kind, swapped; // of the other byte order
} llmc_files[] = {
#define LLMC_FILE(magic, what, data, model)                                                        \
    {                                                                                              \
        magic, {"an llm.c file: " what, data, model}, {                                            \
            "a byte-swapped (big-endian) llm.c file: " what, swap, swap                            \
        }                                                                                          \
    }
#define swap "write it again on a little-endian machine"
    LLMC_FILE(20240326, "a GPT-2 model", token_data, fetch_again),
    LLMC_FILE(20240327, "a GPT-2 debug state", token_data, give_weights),
    LLMC_FILE(20240328, "a tokenizer", token_data, give_weights),
    LLMC_FILE(20240520, "a shard of GPT-2 tokens", fetch_again, "give it as --data"),
    LLMC_FILE(20240522, "an evaluation set (HellaSwag, MMLU)", token_data, give_weights),
    LLMC_FILE(20240527, "an optimizer state", token_data, give_weights),
    LLMC_FILE(20240801, "a shard of uint32 tokens", fetch_again, "give it as --data"),
    LLMC_FILE(20240803, "a Llama-3 model", token_data, give_weights),
#undef swap
#undef LLMC_FILE
};

static const FileKind unknown_llmc = {"an llm.c file of an unknown kind", token_data, give_weights};
static const FileKind unknown_swapped = {
    "a byte-swapped (big-endian) llm.c file of an unknown kind",
    "write it again on a little-endian machine", "write it again on a little-endian machine"};

// The number after the magic one is a small version. A larger one shows that a swapped date was chance.
enum { MOST_VERSION = 16 };

static bool is_date(uint32_t number) { return number > FIRST_DATE && number < LAST_DATE; }

/* By the magic number, and for swapped ones the version after it. Any other date of 2024 is an unknown kind. No raw
 * token file is mistaken for such a file: in our byte order a date is an id that GPT-2 does not have, in the other
 * one date and version are four ids that follow each other once in 1e14. */
static FileKind llmc_kind(uint32_t number, uint32_t version) {
    // both byte orders are tried: a file from a big-endian machine gets its own advice
    uint32_t swapped = __builtin_bswap32(number);
    bool is_swapped = is_date(swapped) && __builtin_bswap32(version) <= MOST_VERSION;
    for (size_t i = 0; i < sizeof llmc_files / sizeof *llmc_files; i++) {
        if (llmc_files[i].magic == number) return llmc_files[i].kind;
        if (llmc_files[i].magic == swapped && is_swapped) return llmc_files[i].swapped;
    }
    return is_date(number) ? unknown_llmc
           : is_swapped    ? unknown_swapped
                           : (FileKind){NULL, NULL, NULL};
}

// -----------------------------------------------------------------------------------------------

// how many bytes are looked at, and how few are too few: some bytes of binary data may be printable by chance
enum { TEXT_HEAD = 64, TEXT_LEAST = 32 };

static bool is_blank(unsigned char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Whether a file's first bytes are all ASCII letters, signs and blanks. */
static bool head_is_text(const unsigned char *head, size_t bytes) {
    // bytes from 0x80 on are refused, too: UTF-8 with other than ASCII letters at its start does not count as text here
    for (size_t i = 0; i < bytes && i < TEXT_HEAD; i++)
        if (!is_blank(head[i]) && (head[i] < ' ' || head[i] > '~')) return false;
    return true;
}

/* The first bytes of a file, at most `most`. */
static const unsigned char *head_of(File *file, size_t most, size_t *bytes) {
    // file_at refuses bytes beyond the end, so a short file is asked only for what it has
    *bytes = file_size(file) < most ? file_size(file) : most;
    return file_at(file, 0, *bytes);
}

bool file_starts_as_text(File *file) {
    size_t bytes;
    const unsigned char *head = head_of(file, TEXT_HEAD, &bytes);
    return bytes >= TEXT_LEAST && head_is_text(head, bytes);
}

bool file_is_markup(File *file) {
    size_t bytes, i = 0;
    const unsigned char *head = head_of(file, TEXT_HEAD, &bytes);
    // a web page may begin with blank lines
    while (i < bytes && is_blank(head[i])) i++;
    return i < bytes && head[i] == '<' && head_is_text(head, bytes);
}

FileKind file_kind_of_head(const unsigned char *head, size_t bytes) {
    bool text = head_is_text(head, bytes); // which may well begin with GGUF
    // In text only the LFS pointer is looked for, which is text itself: "GGUF is a format ..." is not a model.
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((!text || &magics[i] == lfs_pointer) && bytes >= magics[i].offset + magics[i].length &&
            memcmp(head + magics[i].offset, magics[i].start, magics[i].length) == 0)
            return magics[i].kind;
    // A file without a second number gets a version that is too large, so only a date in our byte order can match.
    if (bytes < 4) return (FileKind){NULL, NULL, NULL};
    return llmc_kind(load_u32(head), bytes < 8 ? UINT32_MAX : load_u32(head + 4));
}

FileKind file_kind(File *file) {
    size_t bytes;
    // the last magic number in the table ends at byte 262, so 512 bytes are enough
    const unsigned char *head = head_of(file, FILE_KIND_HEAD, &bytes);
    return file_kind_of_head(head, bytes);
}
