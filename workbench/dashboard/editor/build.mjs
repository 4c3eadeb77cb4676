// Bundles the editor into one file that the dashboard serves. Its first line names what it was made of, so that a test
// finds a bundle that is not that of its sources.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const sources = ["build.mjs", "editor.js", "package-lock.json", "package.json"];
const made = createHash("sha256");
for (const name of sources) made.update(readFileSync(new URL(name, import.meta.url)));

const { metafile } = await build({
  metafile: true,
  entryPoints: ["editor.js"],
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "Editor",
  target: "es2021",
  legalComments: "none",
  charset: "utf8",
  banner: { js: `// Made of ${sources.join(", ")}: ${made.digest("hex")}` },
  outfile: "../app/assets/editor.js",
  logLevel: "info",
});

// What the bundle holds of others, under their licenses.
const packages = new Set();
for (const path of Object.keys(metafile.inputs)) {
  const [, name] = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//) || [];
  if (name) packages.add(name);
}
const notices = [...packages].sort().map((name) => {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`));
  const file = ["LICENSE", "LICENSE.md", "license"].map((each) => `node_modules/${name}/${each}`).find(existsSync);
  return `${name} ${version} (${license})\n\n${file ? readFileSync(file, "utf8").trim() : ""}\n`;
});
writeFileSync("../app/assets/editor.licenses.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
