#!/usr/bin/env bash
# What `make release` does: dist/ with wheel and sdist of the last commit, built twice and compared, the packages that
# come with them (CycloneDX), their licences, and SHA256SUMS.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(realpath -s "${1:?"usage: build.sh PYTHON (of .venv)"}")
work=build/release
if [ -n "$(git status --porcelain)" ]; then
  echo "what is not committed is not released:"; git status --short; exit 2
fi
rm -rf "$work" dist
mkdir -p "$work" dist
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
for turn in once again; do  # in folders of other names, as a path must not get into what is built
  mkdir -p "$work/$turn/memoryd"
  git archive HEAD | tar -x -C "$work/$turn/memoryd"
  (cd "$work/$turn/memoryd" && "$python" -m hatchling build -t sdist -t wheel -d ../dist >/dev/null)
done
diff -r "$work/once/dist" "$work/again/dist" || { echo "two builds differ"; exit 1; }
echo "built twice, byte for byte the same"
cp "$work"/once/dist/* dist/
deploy/model/build.sh "$python" "$work/model"
deploy/model/build.sh "$python" dist
cmp "$work"/model/*.whl dist/memoryd_model_minilm-*.whl || { echo "two builds of the model's wheel differ"; exit 1; }

echo "the server's packages, as its lock names them"
"$python" -m venv "$work/server"
"$work/server/bin/pip" install -q --require-hashes --no-deps --only-binary :all: -r deploy/requirements.lock
"$work/server/bin/pip" install -q --no-deps dist/memoryd-*.whl
"$work/server/bin/pip" uninstall -q -y pip setuptools
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q --require-hashes --no-deps -r deploy/release/requirements.lock
"$work/tools/bin/cyclonedx-py" environment --output-reproducible --of JSON -o dist/memoryd.cdx.json "$work/server/bin/python"
"$work/tools/bin/pip-licenses" --python "$work/server/bin/python" --with-system --order license --format markdown \
  >dist/LICENCES.md
if grep -E "GPL|General Public|UNKNOWN" dist/LICENCES.md; then
  echo "these packages of the lock are under a licence that binds what they are part of, or that is not known"; exit 1
fi
(cd dist && sha256sum -- * >SHA256SUMS)
cat dist/SHA256SUMS
echo "sign it: ssh-keygen -Y sign -f KEY -n file dist/SHA256SUMS"
