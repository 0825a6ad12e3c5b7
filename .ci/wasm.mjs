// Makes `*-wasm.ts` of each `*.as`. With --check it writes nothing and exits 1 when one of them is something else.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const SOURCES = ['src/tables/ndjson/quick/quick.as', 'src/lib/quick-scan.as'];
const root = join(import.meta.dirname, '..');
const place = mkdtempSync(join(tmpdir(), 'millrace-wasm-'));
const made = join(place, 'made.wasm');
const options = ['-O3', '--runtime', 'stub', '--noAssert', '--enable', 'simd'];
const compiler = join(root, 'node_modules/assemblyscript/bin/asc.js');
try {
  for (const source of SOURCES) {
    // The compiler takes names that end in .ts only, which every other tool here would take for TypeScript.
    copyFileSync(join(root, source), join(place, 'made.ts'));
    const args = [compiler, 'made.ts', ...options, '--outFile', 'made.wasm'];
    const { status, stderr } = spawnSync(process.execPath, args, { cwd: place, encoding: 'utf8' });
    if (status !== 0) throw new Error(stderr);
    const text = `/** \`${basename(source)}\` as WebAssembly, made by \`npm run wasm\`. */
export const WASM = Buffer.from(
  '${readFileSync(made, 'base64')}',
  'base64',
);
`;
    const target = join(root, source.replace(/\.as$/, '-wasm.ts'));
    if (!process.argv.includes('--check')) writeFileSync(target, text);
    else if (readFileSync(target, 'utf8') !== text) {
      process.stderr.write(`${basename(target)} is stale: npm run wasm\n`);
      process.exitCode = 1;
    }
  }
} finally {
  rmSync(place, { recursive: true });
}
