import type { Mutation } from '../support/mutant.ts';

const KILL = "process.kill(process.pid, 'SIGKILL')";
/** By then what was noted too early is committed. */
const KILL_LATER = `new Promise(() => globalThis.setTimeout(() => ${KILL}, 1000))`;

/** Each leaves out one thing that the promise stands on, so that the judge can be seen to notice; or ends at a step of its own. */
export const MUTANTS = {
  'acks=1': [/const ALL_REPLICAS = -1/, 'const ALL_REPLICAS = 1'],
  'no dedup': [/recorded === null \|\| verdict !== ["']first["']/, 'recorded === null'],
  'no fencing': [/if \(!entry\.lease\.isHeld\) entry\.withheld = true;/, ''],
  'no bound': [/this\.#uncommitted < MOST_UNCOMMITTED/, 'true'],
  'no commit': [/await this\.#membership\.commit\(this\.#lease, offsets\)/, 'true'],
  'offset first': [/Math\.min\(offset, open\.least\)/, 'offset'],
  'killed before quarantine': [/await this\.#try\(task\)/, `await ${KILL_LATER}`],
  'killed after quarantine': [/await this\.#try\(task\)/, `(await this.#try(task), ${KILL})`],
  'killed before the offset': [
    /(this\.#consumer\.moveCursor\(this\.#options\.name, upTo\))/,
    `($1, tasks.length > 0 && ${KILL})`,
  ],
} as const satisfies Record<string, Mutation>;
