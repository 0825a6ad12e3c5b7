import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const ROOT = join(import.meta.dirname, '../..');

/** Loaded lazily, native, or shared with code of the user's own: these stay where they are installed. */
const SEPARATE =
  /^(@azure|@google-cloud|@opentelemetry|@platformatic|@duckdb|better-sqlite3|hyparquet|pg|pino)/;

/**
 * What most commands load is one file, as finding and linking many was a fifth of a start. These rooms import no others, so that
 * this changes no order in which modules begin.
 */
const COMMON = { name: 'common', test: /\/src\/(lib|core)\//, minShareCount: 10 };

/**
 * Bundles the program once for all processes that the tests of this run start, and has V8 keep what it compiles: finding
 * and compiling hundreds of files was most of a start. Folders are as deep as in `src`, as paths beside a file need it.
 */
export default async function build(): Promise<() => void> {
  const cache = join(ROOT, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'millrace-built-'));
  // Commands that root runs act as another user, who has to read it.
  chmodSync(folder, 0o755);
  const bundle = await rolldown({
    input: {
      main: join(ROOT, 'src/main.ts'),
      'room/worker': join(ROOT, 'src/journal/worker.ts'),
      'room/compress-thread': join(ROOT, 'src/sinks/files/compress-thread.ts'),
      'room/log-thread': join(ROOT, 'src/privacy/receipts/log-thread.ts'),
      'room/finding-thread': join(ROOT, 'src/journal/search/finding-thread.ts'),
      'room/reading-thread': join(ROOT, 'src/journal/search/reading-thread.ts'),
      'room/sealing-thread': join(ROOT, 'src/privacy/seal/sealing-thread.ts'),
      'room/shaping-thread': join(ROOT, 'src/export/shaping-thread.ts'),
    },
    platform: 'node',
    external: SEPARATE,
    treeshake: false,
    preserveEntrySignatures: 'allow-extension',
  });
  await bundle.write({
    dir: join(folder, 'src'),
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'room/[name]-[hash].js',
    keepNames: true,
    codeSplitting: { includeDependenciesRecursively: false, groups: [COMMON] },
  });
  await bundle.close();
  cpSync(join(ROOT, 'src/observe/admin/console'), join(folder, 'src/room/console'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  process.env['MILLRACE_TEST_MAIN'] = join(folder, 'src/main.js');
  process.env['NODE_COMPILE_CACHE'] = join(folder, 'compiled');
  process.env['MILLRACE_TEST_KEPT'] = join(folder, 'kept');
  mkdirSync(join(folder, 'kept'));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  // The workers write what they have compiled when they end, which may be later than what is returned here.
  process.once('exit', remove);
  return remove;
}
