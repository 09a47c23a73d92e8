# kernels.awk: makes what holds the kernels of llmc/cpu/ together in a portable program, where they are compiled once for
# each x86-64 level. It reads llmc/ops.h, in which a declaration begins in the first column, and prints C:
#   -v prefix=v3_      #define linear_forward v3_linear_forward ...   put before each file of that level; read
#                      llmc/cpu/*.h as well, for what the files of a level call of each other
#   without a prefix   void linear_forward(...) { ... }               which calls the level of this processor
BEGIN {
    if (!prefix) print "#include \"llmc/base/processor.h\"\n#include \"llmc/ops.h\"\n"
}
/^(void|bool|int|int64_t|size_t|double|real|const char) .*\(/ { declaration = 1 }
declaration {
    sub(/ *\/\/.*/, "")
    text = text $0 " "
    if (/;/) {
        match(text, /[a-z_0-9]+\(/)
        type = substr(text, 1, RSTART - 1)
        name = substr(text, RSTART, RLENGTH - 1)
        parameters = substr(text, RSTART + RLENGTH)
        sub(/\).*/, "", parameters)
        if (prefix) print "#define " name " " prefix name
        else print_function()
        declaration = 0
        text = ""
        count++
    }
}
# The function of the seam, with a declaration of the one of each level.
function print_function(    level, parameter, arguments, i, n) {
    n = parameters == "void" ? 0 : split(parameters, parameter, ",")
    for (i = 1; i <= n; i++) {
        match(parameter[i], /[A-Za-z_0-9]+ *$/)
        arguments = arguments (i > 1 ? ", " : "") substr(parameter[i], RSTART)
    }
    for (level = 2; level <= 4; level++) print type "v" level "_" name "(" parameters ");"
    print type name "(" parameters ") {"
    print "    int level = processor_level();"
    print "    " (type == "void " ? "" : "return ") "(level == 4 ? v4_" name " : level == 3 ? v3_" name " : v2_" name ")(" arguments ");"
    print "}\n"
}
END { if (count < 30) exit 1 } # ops.h has changed its form
