#!/bin/sh
# Renews the vendored modules. Versions are pinned here; the result is committed,
# so that neither the build nor the page needs the network. The only changes made
# to the published files: bare import specifiers become relative paths (an import
# map would be an inline script, which the page's content policy forbids) and the
# references to source maps are dropped.
set -eu
cd "$(dirname "$0")"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
(cd "$tmp" && npm pack --silent \
  preact@11.2.0 htm@3.1.1 @preact/signals@2.11.4 @preact/signals-core@1.14.5 uplot@1.6.32 >/dev/null)
take() { # archive, path in it, name here
  mkdir -p "$tmp/x" && tar -xzf "$tmp/$1" -C "$tmp/x"
  sed -e 's#from"preact/hooks"#from"./hooks.js"#g' \
      -e 's#from"preact"#from"./preact.js"#g' \
      -e 's#from"@preact/signals-core"#from"./signals-core.js"#g' \
      -e 's#//\# sourceMappingURL=.*$##' "$tmp/x/package/$2" >"$3"
  rm -rf "$tmp/x"
}
take preact-11.2.0.tgz dist/preact.mjs preact.js
take preact-11.2.0.tgz hooks/dist/hooks.mjs hooks.js
take preact-11.2.0.tgz LICENSE LICENSE-preact.txt
take htm-3.1.1.tgz dist/htm.module.js htm.js
take htm-3.1.1.tgz LICENSE LICENSE-htm.txt
take preact-signals-2.11.4.tgz dist/signals.mjs signals.js
take preact-signals-2.11.4.tgz LICENSE LICENSE-signals.txt
take preact-signals-core-1.14.5.tgz dist/signals-core.mjs signals-core.js
take preact-signals-core-1.14.5.tgz LICENSE LICENSE-signals-core.txt
take uplot-1.6.32.tgz dist/uPlot.esm.js uplot.js
take uplot-1.6.32.tgz dist/uPlot.min.css uplot.css
take uplot-1.6.32.tgz LICENSE LICENSE-uplot.txt
(cd "$tmp" && sha256sum ./*.tgz | sed 's#\./##') >archives.sha256
sha256sum ./*.js ./*.css | sed 's#\./##' >files.sha256
