#!/usr/bin/env bash
# What `make model-wheel` does: a wheel with the model's file, as it is installed and was checked.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$(realpath -s "${1:?"usage: build.sh PYTHON (of .venv) [FOLDER]"}")
into=$(realpath -m "${2:-dist}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r deploy/model/. "$work"
cp LICENSE "$work"
"$python" -c 'import sys; from memoryd.embedding.packaged import packaged_model; sys.stdout.buffer.write(packaged_model())' \
  >"$work/memoryd_model_minilm/model.onnx"
mkdir -p "$into"
(cd "$work" && SOURCE_DATE_EPOCH=1767225600 "$python" -m hatchling build -t wheel -d "$into" >/dev/null)  # 2026-01-01: its bytes depend on the file alone
ls "$into"/memoryd_model_minilm-*.whl
