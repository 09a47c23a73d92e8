# oracle.awk: makes the two headers by which llmc/plain/ fits into one program with another implementation of
# llmc/ops.h (see oracle.h). It reads ops.h, where a declaration begins in the first column, and prints
#   -v names=1   #define linear_forward plain_linear_forward ...   put before each file of llmc/plain/
#   -v names=0  void plain_linear_forward(double *out, ...); ...  for the tests, with the types of double
/^(void|bool|int|int64_t|size_t|double|const char) .*\(/ { declaration = 1 }
declaration {
    sub(/ *\/\/.*/, "")
    text = text $0 "\n"
    if (/;/) {
        match(text, /[a-z_0-9]+\(/)
        name = substr(text, RSTART, RLENGTH - 1)
        if (names) print "#define " name " plain_" name
        gsub(/(Param|Act|Grad|RowStat|OptimizerState) \*/, "double *", text)
        gsub(/Id \*/, "int32_t *", text)
        sub(name "\\(", "plain_" name "(", text)
        if (!names) printf "%s", text
        declaration = 0
        text = ""
        count++
    }
}
END { if (count < 30) exit 1 } # ops.h has changed its form
