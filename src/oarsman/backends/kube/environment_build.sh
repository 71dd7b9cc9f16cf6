#!/bin/sh
# Builds the environment OARSMAN_DIGEST into the claim: a virtual environment on top of what the image has.
#
# A virtual environment knows its own path, so it is built where it stays, in a folder of this pod alone; a link by its
# digest appears when it is whole. A build that is killed leaves a folder that nothing leads to.
set -u
place=$OARSMAN_PLACE digest=$OARSMAN_DIGEST version=$OARSMAN_PYTHON
umask 022 # jobs may run as other users
trap 'exit 143' TERM

give_up() {
    echo "ERROR: $*" | tee /dev/termination-log >&2
    exit 1
}
fits() { "$1" -c 'import platform, sys; sys.exit(not f"{platform.python_version()}.".startswith(sys.argv[1]))' "${version:+$version.}" 2>/dev/null; }
python=
for name in ${version:+"python$version" "python${version%.*}"} python3 python; do
    if command -v "$name" >/dev/null && fits "$name"; then python=$name; break; fi
done
[ -n "$python" ] || give_up "there is no Python${version:+ $version} in the image"

if [ -x "$place/$digest/bin/python" ]; then
    echo "it is in the claim already"
else
    mkdir -p "$place/builds" || give_up "the claim cannot be written to by user $(id -u)"
    tree=$place/builds/$digest-$(uname -n)
    rm -rf "$tree"
    echo "$ $python -m venv --system-site-packages $tree"
    "$python" -m venv --system-site-packages "$tree" || give_up "$python of the image makes no virtual environments: it needs venv and pip"
    printf '%s\n' "$OARSMAN_REQUIREMENTS" >"$tree/requirements.txt"
    echo "$ pip install -r requirements.txt"
    (cd "$tree" && HOME=$tree PIP_USER=0 bin/python -m pip install --no-input --disable-pip-version-check --no-cache-dir -r requirements.txt) || {
        rm -rf "$tree"
        exit 1 # pip has said why
    }
    rm -rf "${place:?}/$digest" # a link that leads nowhere any more
    if ! ln -s "builds/${tree##*/}" "$place/$digest" 2>/dev/null; then
        [ -x "$place/$digest/bin/python" ] || give_up "no link can be made in the claim"
        rm -rf "$tree" # another build of the same contents was quicker
    fi
fi

# What is in it, for those who ask: a termination message has 4096 bytes, so of many packages the first ones are told.
"$place/$digest/bin/python" - "$(du -skL "$place/$digest" | cut -f1)" >/dev/termination-log <<'END'
import importlib.metadata, json, platform, sys, sysconfig

folders = sorted({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})
found = {f"{one.metadata['Name']}=={one.version}" for one in importlib.metadata.distributions(path=folders)}
told = {"python": platform.python_version(), "sizeBytes": int(sys.argv[1] or 0) * 1024, "packages": []}
for package in sorted(name for name in found if not name.startswith("pip==")):
    if len(json.dumps(told)) + len(json.dumps(package)) > 4000:
        break
    told["packages"].append(package)
print(json.dumps(told))
END
echo "it is ready"
