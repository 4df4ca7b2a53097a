# Installs the package in a copy of this system that exists only here, and uses it as its guide says. It needs root, and a
# mount and a network namespace of its own. Arguments: an empty directory, the package.
set -eu
place=$1
package=$2
fail() { echo "$*" >&2; exit 1; }

mount -t tmpfs -o mode=755 trial "$place"
mkdir "$place/upper" "$place/work" "$place/root"
mount -t overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" overlay "$place/root"
root=$place/root
# Nothing of a running system: no systemd, no socket, no settings and no contexts.
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
rm -rf "$root/etc/forewarn" "$root/var/lib/forewarn" "$root/usr/share/doc/forewarn"
cp "$package" "$root/tmp/forewarn.deb"
ip link set lo up 2>/dev/null || true

as_root="env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot $root"
in_root() { $as_root "$@"; }
# dpkg of some images leaves out documentation.
in_root dpkg --force-confnew --path-include='/usr/share/*' -i /tmp/forewarn.deb >"$place/dpkg" 2>&1 || fail "$(cat "$place/dpkg")"

# Before the service runs: the hint is about the service.
if in_root forewarn vm ls >"$place/out" 2>&1; then fail "vm ls succeeds without a server"; fi
grep -q 'the default address' "$place/out" || fail "$(cat "$place/out")"
grep -q 'systemctl start forewarn' "$place/out" || fail "$(cat "$place/out")"
if grep -q 'forewarn dev' "$place/out"; then fail "a hint proposes dev: $(cat "$place/out")"; fi

# The example of a fleet, as the settings propose it.
in_root cp /usr/share/doc/forewarn/examples/fleet.toml /etc/forewarn/fleet.toml
in_root sed -i 's|^# fleet = |fleet = |' /etc/forewarn/serve.toml
in_root grep -q '^fleet = "/etc/forewarn/fleet.toml"$' /etc/forewarn/serve.toml || fail "the settings name no fleet"

# The settings can be checked before the first start: the directory of the socket exists.
in_root forewarn serve --config /etc/forewarn/serve.toml --check
if in_root forewarn doctor --config /etc/forewarn/serve.toml | grep FINDING | grep -v '^open files'; then
    fail "the settings of the package have findings"
fi

# The data directory and the user of the unit.
in_root install -d -m 0700 -o forewarn -g forewarn /var/lib/forewarn
# shellcheck disable=SC2086
(exec $as_root setpriv --reuid forewarn --regid forewarn --clear-groups \
    forewarn serve --config /etc/forewarn/serve.toml) >"$place/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null || true' EXIT
in_root forewarn --api unix:/run/forewarn/api.sock health --wait 60s >/dev/null || fail "$(cat "$place/log")"

# Root needs no options.
in_root forewarn vm ls >"$place/out" 2>&1 || fail "$(cat "$place/out")"
grep -q '^mail ' "$place/out" || fail "vm ls does not list the example: $(cat "$place/out")"
in_root forewarn context show | grep -q 'the socket of the service' || fail "the address is not from the socket"
in_root sh -c 'FOREWARN_API= forewarn vm ls' >/dev/null || fail "an empty variable counts"

# Other users get an error, and not another server.
if in_root env HOME=/nonexistent setpriv --reuid nobody --regid nogroup --clear-groups forewarn vm ls >"$place/out" 2>&1; then
    fail "nobody may use the socket"
fi
grep -q 'Permission denied' "$place/out" && grep -q 'hint: only root' "$place/out" || fail "$(cat "$place/out")"

# The manual, where there is man.
if in_root sh -c 'command -v man' >/dev/null; then
    for page in serve.toml fleet.toml; do
        in_root man -w 5 "$page" >/dev/null || fail "no page: $page(5)"
        in_root man --warnings -P cat 5 "$page" >"$place/out" 2>"$place/warnings" || fail "$(cat "$place/warnings")"
        [ ! -s "$place/warnings" ] || fail "$page(5): $(cat "$place/warnings")"
    done
    grep -q 'addresses' "$place/out" || fail "fleet.toml(5) has no text"
fi

kill "$server"
wait "$server" || fail "the server has failed: $(cat "$place/log")"
trap - EXIT
in_root dpkg -r forewarn >"$place/dpkg" 2>&1 || fail "$(cat "$place/dpkg")"
echo "installed and used: $(basename "$package")"
