#!/usr/bin/env bash
# Installs Payrelay, its simulator and its tools into a folder of their own: install.sh TARGET [SOURCE]
#
# Everything that is installed is locked by its hash, our own wheels too. The folder holds no pip, no build
# tool, and sbom.cdx.json: what it contains, as CycloneDX. Needs Python 3.11 or newer with venv; needs no root.
set -euo pipefail

target=${1:?"the folder to install into"}
source=$(cd "${2:-$(dirname "$0")/../..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 -m venv "$work/tools"
pip() { "$work/tools/bin/pip" --disable-pip-version-check --quiet --no-cache-dir "$@"; }

# The tools of the build: they make the wheels and write the list, and stay behind.
pip install --require-hashes --only-binary :all: -r "$source/requirements/sbom.lock"
mkdir "$work/source"
cp -R "$source"/{src,tools,pyproject.toml,README.md,LICENSE,hatch_build.py} "$work/source/"
pip wheel --no-deps --no-build-isolation --wheel-dir "$work/wheels" "$work"/source{,/src/payrelay_simulator,/tools}

python3 -m venv --without-pip "$target"
pip --python "$target/bin/python" install --require-hashes --only-binary :all: -r "$source/requirements/service.lock"
for wheel in "$work"/wheels/*.whl; do
    echo "$wheel --hash=sha256:$(sha256sum "$wheel" | cut -d' ' -f1)"
done >"$work/wheels.lock"
pip --python "$target/bin/python" install --no-deps --require-hashes -r "$work/wheels.lock"
# Where the wheels were built is nobody's business, and would differ at each build.
rm -f "$target"/lib/python3*/site-packages/payrelay*.dist-info/direct_url.json

"$work/tools/bin/cyclonedx-py" environment --output-reproducible --output-format JSON \
    --output-file "$target/sbom.cdx.json" "$target/bin/python"
