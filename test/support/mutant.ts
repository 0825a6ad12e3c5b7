import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MAIN } from './millrace.ts';

/** What is changed in one file of the program, as it is built. */
export type Mutation = readonly [pattern: RegExp, text: string];

/** The built program with one thing changed. @returns what to run, and what removes it */
export function makeMutant(
  name: string,
  [pattern, text]: Mutation,
): { readonly main: string; readonly remove: () => void } {
  const built = dirname(dirname(MAIN));
  const folder = mkdtempSync(join(dirname(built), 'millrace-mutant-'));
  cpSync(built, folder, { recursive: true, filter: (path) => !path.endsWith('compiled') });
  let changed = 0;
  for (const entry of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.js')) continue;
    const path = join(folder, entry);
    const before = readFileSync(path, 'utf8');
    const after = before.replace(pattern, text);
    if (after === before) continue;
    writeFileSync(path, after);
    changed += 1;
  }
  if (changed !== 1) throw new Error(`${name}: changed ${changed} files`);
  return {
    main: join(folder, 'src/main.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
