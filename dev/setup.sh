#!/bin/sh
# setup.sh (make setup): what the tests use beside a C compiler and make: Open MPI, for runs over several
# ranks, and gnuplot, for dev/plot. Installs what is missing with apt-get where this user may; elsewhere
# prints what to install and succeeds: the tests that need it are skipped with a message.
missing() { ! command -v "$1" >/dev/null 2>&1; }

for tool in "${CC:-cc}" make; do
    missing "$tool" && echo "setup: $tool is missing, without which nothing can be built: apt install build-essential," \
        "dnf install gcc make, or xcode-select --install"
done

packages=''
if missing mpicc || missing mpirun; then packages='libopenmpi-dev openmpi-bin'; fi
if missing gnuplot; then packages="$packages gnuplot-nox"; fi
if [ -z "$packages" ]; then
    echo "setup: Open MPI and gnuplot are here"
    exit 0
fi

# As root, or where sudo asks for no password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@" 2>/dev/null; fi
}
install() { # PACKAGES: with apt-get; the lists are renewed only when they do not know a package
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>&1
}

# shellcheck disable=SC2086 # a list
if command -v apt-get >/dev/null 2>&1 && as_root true; then
    if install $packages || { as_root apt-get update -qq >/dev/null 2>&1 && install $packages; }; then
        echo "setup: installed" $packages
        exit 0
    fi
    echo "setup: apt-get could not install" $packages
fi
cat <<END
setup: not installed here: tests that need Open MPI or gnuplot will be skipped. To install them:
    Debian, Ubuntu   apt install libopenmpi-dev openmpi-bin gnuplot-nox
    Fedora           dnf install openmpi-devel gnuplot     (then: module load mpi)
    macOS            brew install open-mpi gnuplot
END
