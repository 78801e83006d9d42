#!/usr/bin/env bash
# What `make deb` does: dist/memoryd_VERSION_ARCH.deb, with the locked packages in /opt/memoryd.
set -euo pipefail
cd "$(dirname "$0")/../.."
wheel=$(ls -t dist/memoryd-*.whl | head -1)  # the last one that was built
version=$(basename "$wheel" | cut -d- -f2)
architecture=$(dpkg --print-architecture)
python=$(command -v /usr/bin/python3)  # the package runs with Debian's own
minor=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
root=build/debian/memoryd
rm -rf build/debian
mkdir -p "$root"/{DEBIAN,opt,usr/bin,usr/lib/{systemd/system,sysusers.d,tmpfiles.d},etc/memoryd,usr/share/doc/memoryd}

# An environment that was made by any Python of this version; its links and first lines are set to where it will be.
"${1:?"usage: build.sh PYTHON (of .venv, and of the version of /usr/bin/python3)"}" -m venv "$root/opt/memoryd"
"$root/opt/memoryd/bin/python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$minor')" \
  || { echo "make deb needs Python $minor, as /usr/bin/python3 is"; exit 2; }
"$root/opt/memoryd/bin/pip" install -q --require-hashes --no-deps --only-binary :all: -r deploy/requirements.lock
"$root/opt/memoryd/bin/pip" install -q --no-deps "$wheel"
"$root/opt/memoryd/bin/pip" uninstall -q -y setuptools pip
find "$root/opt/memoryd" -name __pycache__ -prune -exec rm -r {} +
ln -sf /usr/bin/python3 "$root/opt/memoryd/bin/python3"
ln -sf python3 "$root/opt/memoryd/bin/python"
ln -sf python3 "$root/opt/memoryd/bin/python$minor"
printf 'home = /usr/bin\ninclude-system-site-packages = false\n' >"$root/opt/memoryd/pyvenv.cfg"
grep -rlI "^#!.*/opt/memoryd/bin/python" "$root/opt/memoryd/bin" | xargs sed -i "1s|^#!.*/opt/memoryd/bin/python.*|#!/opt/memoryd/bin/python3|"
rm -f "$root"/opt/memoryd/bin/{activate*,Activate*}

ln -s /opt/memoryd/bin/memoryd /opt/memoryd/bin/memory "$root/usr/bin/"
sed 's|/usr/local/bin/memoryd|/usr/bin/memoryd|' deploy/memoryd.service >"$root/usr/lib/systemd/system/memoryd.service"
cp deploy/memoryd.sysusers.conf "$root/usr/lib/sysusers.d/memoryd.conf"
cp deploy/memoryd.tmpfiles.conf "$root/usr/lib/tmpfiles.d/memoryd.conf"
cp deploy/memoryd.toml "$root/etc/memoryd/memoryd.toml"
cp LICENSE NOTICE CHANGELOG.md "$root/usr/share/doc/memoryd/"
echo /etc/memoryd/memoryd.toml >"$root/DEBIAN/conffiles"
install -m 0755 deploy/debian/postinst deploy/debian/prerm deploy/debian/postrm "$root/DEBIAN/"
cat >"$root/DEBIAN/control" <<CONTROL
Package: memoryd
Version: $version
Architecture: $architecture
Maintainer: the authors of memoryd
Depends: python3 (>= $minor), python3 (<< $next), systemd | systemd-standalone-sysusers, systemd | systemd-standalone-tmpfiles
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f1)
Section: utils
Priority: optional
Description: The memory of AI agents
 One gRPC daemon on the host that keeps what agents learn: memories, people and
 conversations, found by meaning. It works with no network and no language
 model, and gives each sandbox an identity that it cannot forge.
CONTROL
dpkg-deb --build --root-owner-group -Zxz "$root" "dist/memoryd_${version}_${architecture}.deb" >/dev/null
ls -sh "dist/memoryd_${version}_${architecture}.deb"
