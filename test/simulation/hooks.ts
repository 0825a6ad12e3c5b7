import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** What the program imports, and what it gets here. Left alone where SQLite is opened: that is real, and answers at once. */
const STAND_INS: readonly (readonly [specifier: RegExp, file: string])[] = [
  [/^node:fs$/, './fs.ts'],
  [/^node:fs\/promises$/, './fs-promises.ts'],
  [/^node:zlib$/, './zlib.ts'],
  [/^node:crypto$/, './crypto.ts'],
  [/^node:timers\/promises$/, './timers-promises.ts'],
  [/\/file-lock\.ts$/, './file-lock.ts'],
  [/\/listen\.ts$/, './listen.ts'],
  [/^@prometheus-io\/client$/, './prometheus.ts'],
  [/^better-sqlite3$/, './sqlite.ts'],
  [/\/writer-thread\.ts$/, './writer-thread.ts'],
  [/\/sealing-threads\.ts$/, './sealing-threads.ts'],
];
/** Defects that are put into the program while it is loaded, so that a test sees the histories find them. */
const DEFECTS: Readonly<Record<string, readonly [file: string, code: string, instead: string]>> = {
  'answer before sync': ['journal/segments/segment.ts', '    fdatasyncSync(fd);\n', ''],
  'cursor before file': [
    'lib/append-file.ts',
    'if (this.#syncs) await handle.datasync();',
    'if (this.#syncs) await null;',
  ],
  'rename without directory sync': ['sinks/files/folder-archive.ts', '    await syncFolder(folder);\n', ''],
  'routes of now': ['deliver/routes/accepted.ts', 'era = this.#eraOf(seq)', 'era = this.#newest'],
  'forgotten sinks': ['deliver/plan-runner.ts', '    refuseWaiting(counted, blocked);\n', ''],
  'forgotten successors': [
    'deliver/plan-runner.ts',
    'this.#accepted = new AcceptedRoutes(await journal.succeed(from, to));',
    'void [from, to];',
  ],
  'given up without dead letters': [
    'deliver/plan-runner.ts',
    'await deadLetterWaiting(await this.#waitingFor(sink, journal), isErased, clock.now())',
    '0',
  ],
  'lines that were never synced are trusted': [
    'lib/append-file.ts',
    '      else if (end === size && size > 0) await handle.datasync();\n',
    '',
  ],
  'old sinks not brought back': ['deliver/feed.ts', 'this.#options.patient !== true', 'true'],
};
const defect = process.env['SIMULATION_DEFECT'];
const SRC = new URL('../../src/', import.meta.url).href;
const change = defect === undefined ? undefined : DEFECTS[defect];
if (defect !== undefined && change === undefined) throw new Error(`there is no defect ${defect}`);
// A file that has moved would otherwise leave the program without its defect, and the run would find nothing.
if (change !== undefined && !readFileSync(new URL(change[0], SRC), 'utf8').includes(change[1]))
  throw new Error(`${change[0]} has no ${change[1]}`);
const REAL = new Set(['journal/database.ts', 'journal/space.ts'].map((file) => SRC + file));

registerHooks({
  resolve(specifier, context, next) {
    const from = context.parentURL ?? '';
    if (from.startsWith(SRC) && !(REAL.has(from) && specifier === 'node:fs')) {
      const found = STAND_INS.find(([pattern]) => pattern.test(specifier));
      if (found !== undefined) return next(new URL(found[1], import.meta.url).href, context);
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (change === undefined || url !== SRC + change[0]) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: source.replaceAll(change[1], change[2]) };
  },
});
