import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MAIN } from '../support/millrace.ts';

const KILL = "process.kill(process.pid, 'SIGKILL')";
/** By then what was noted too early is committed. */
const KILL_LATER = `new Promise(() => globalThis.setTimeout(() => ${KILL}, 1000))`;

/** Each leaves out one thing that the promise stands on, so that the judge can be seen to notice; or ends at a step of its own. */
export const MUTANTS = {
  'acks=1': [/const ALL_REPLICAS = -1/, 'const ALL_REPLICAS = 1'],
  'no dedup': [/kept === null \|\| verdict !== ["']first["']/, 'kept === null'],
  'no fencing': [/if \(!entry\.claim\.isHeld\) entry\.withheld = true;/, ''],
  'no bound': [/this\.#unnoted < MOST_UNNOTED \|\|/, 'true ||'],
  'no commit': [/await this\.#membership\.commit\(this\.#claim, offsets\)/, 'true'],
  'offset first': [/Math\.min\(offset, least\)/, 'offset'],
  'killed before quarantine': [/await this\.#try\(task\)/, `await ${KILL_LATER}`],
  'killed after quarantine': [/await this\.#try\(task\)/, `(await this.#try(task), ${KILL})`],
  'killed before the offset': [
    /(this\.#share\.moveCursor\(["']_window["'], upTo\))/,
    `($1, tasks.length > 0 && ${KILL})`,
  ],
} as const satisfies Record<string, readonly [RegExp, string]>;

/** The program with one thing left out. @returns what to run, and what removes it */
export function makeMutant(name: keyof typeof MUTANTS): {
  readonly main: string;
  readonly remove: () => void;
} {
  const built = dirname(dirname(MAIN));
  const folder = mkdtempSync(join(dirname(built), 'millrace-mutant-'));
  cpSync(built, folder, { recursive: true, filter: (path) => !path.endsWith('compiled') });
  const [pattern, text] = MUTANTS[name];
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
