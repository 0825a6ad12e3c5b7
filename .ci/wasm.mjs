// Makes quick-wasm.ts of quick.as. With --check it writes nothing and exits 1 when quick-wasm.ts is something else.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'src/ndjson/quick');
const place = mkdtempSync(join(tmpdir(), 'millrace-wasm-'));
const made = join(place, 'quick.wasm');
const options = ['-O3', '--runtime', 'stub', '--noAssert', '--enable', 'simd'];
const compiler = join(root, 'node_modules/assemblyscript/bin/asc.js');
try {
  // The compiler takes names that end in .ts only, which every other tool here would take for TypeScript.
  copyFileSync(join(folder, 'quick.as'), join(place, 'quick.ts'));
  const args = [compiler, 'quick.ts', ...options, '--outFile', 'quick.wasm'];
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: place, encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  const text = `/** \`quick.as\` as WebAssembly, made by \`npm run wasm\`. */
export const WASM = Buffer.from(
  '${readFileSync(made, 'base64')}',
  'base64',
);
`;
  const target = join(folder, 'quick-wasm.ts');
  if (!process.argv.includes('--check')) writeFileSync(target, text);
  else if (readFileSync(target, 'utf8') !== text) {
    process.stderr.write('quick-wasm.ts is stale: npm run wasm\n');
    process.exitCode = 1;
  }
} finally {
  rmSync(place, { recursive: true });
}
