#!/usr/bin/env bash
# Run every stage on the smoke profile in a scratch copy of the working tree: smoke.sh [FOLDER]
# A given FOLDER is kept; otherwise the copy is deleted.
set -euo pipefail
if [ $# -gt 0 ]; then
  scratch=$1
  mkdir -p "$scratch"
else
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
fi
python -m pipelines.scratch "$scratch" smoke
cd "$scratch"
export PYTHONPATH="$scratch/src:$scratch"
python -m pipelines.compose
python -m pipelines.repro
test -s reports/index.html && test -s reports/README.md && test -s reports/metrics.json
echo "smoke: every stage ran; reports/index.html has $(wc -c < reports/index.html) bytes"
