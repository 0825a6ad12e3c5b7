import { parseArgs } from 'node:util';

export interface IngestOptions {
  /** Events of one round. */
  readonly perRound: number;
  /** Events of one turn of a receiver that is compared with the receiver. */
  readonly perTurn: number;
  readonly rounds: number;
  readonly connections: number;
  readonly body: BodySize;
  /** Whether the handlers of `rivals/` are measured in the same rounds. */
  readonly rivals: boolean;
  /** Events after the rounds, over which memory is watched; 0 watches it over the rounds. */
  readonly memory: number;
  /** Events in the journal before a second receiver is measured too; 0 leaves that out. */
  readonly filled: number;
  readonly paceSeconds: number;
  /** The program of a second receiver that is measured in turns; null leaves that out. */
  readonly against: string | null;
  /** Share of events that a second receiver traces, in the same rounds; null leaves that out. */
  readonly traces: number | null;
  /** Also a receiver that gives receipts. */
  readonly receipts: boolean;
  /** Also a receiver that does not remember what events look like, as the others do. */
  readonly schema: boolean;
  /** CPUs that everything runs on, as `taskset` names them; null takes all. */
  readonly cores: string | null;
  readonly profile: string | null;
  /** Another program than this tree's; null for this one's. */
  readonly main: string | null;
  /** Where the temporary folder is made; null takes the system's. */
  readonly folder: string | null;
}

/**
 * Bytes of a body, and the defaults that go with it. Of bodies above 64 KiB that nobody has verified yet a receiver holds 128
 * from one address at most, and the load has one.
 */
export const BODIES = {
  '1.2k': { bytes: 1200, perRound: 50_000, connections: 256 },
  '10k': { bytes: 10_000, perRound: 20_000, connections: 256 },
  '100k': { bytes: 100_000, perRound: 3000, connections: 64 },
} as const;
export type BodySize = keyof typeof BODIES;

export const HELP = `Flags:
  --rivals          also measure the handlers of test/bench/rivals (go-vf needs go), and p99 at 2500/s against node-vf
  --rounds N        rounds, each with every server once (default 5)
  --per-round N     events of one round (default 50000; 20000 of 10k, 3000 of 100k)
  --per-turn N      events of one turn where two receivers are compared in turns (default a tenth of a round)
  --connections N   keep-alive connections of the load generator (default 256; 64 for 100k)
  --body SIZE       bytes of an event: 1.2k, 10k or 100k (default 1.2k)
  --pace-seconds N  length of a latency run (default 6); there is one a round
  --memory N        watch memory over N events after the rounds, instead of over the rounds; its target counts from 2000000
  --long            also measure a receiver whose journal holds --events already (about 4 GB of disk, some minutes)
  --events N        events in that journal (default 2000000; implies --long)
  --against FILE    also measure another program, in turns, such as the src/main.ts of the tree before a change
  --traces SHARE    also measure a receiver that exports traces of this share (0 to 1), in turns
  --schema          also measure a receiver without the schema memory, in turns
  --receipts        also measure a receiver that gives receipts, in turns
  --cores LIST      run everything on these CPUs, such as 0,1 (needs taskset)
  --folder DIR      make the temporary folder here; put it on the disk that is to be measured
  --main FILE       measure another program (a main.js, or the src/main.ts of another tree)
  --profile DIR     write a CPU profile of the receiver to this folder
`;

/** @throws TypeError for a flag that is not known or has a value that it cannot have */
export function parseOptions(argv: readonly string[]): IngestOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rivals: { type: 'boolean' },
      rounds: text,
      'per-round': text,
      'per-turn': text,
      connections: text,
      body: text,
      'pace-seconds': text,
      memory: text,
      long: { type: 'boolean' },
      events: text,
      against: text,
      traces: text,
      receipts: { type: 'boolean' },
      schema: { type: 'boolean' },
      cores: text,
      folder: text,
      profile: text,
      main: text,
    },
  });
  const number = (
    name: 'rounds' | 'per-round' | 'per-turn' | 'connections' | 'pace-seconds' | 'memory' | 'events',
    otherwise: number,
  ) => {
    const value = Number(values[name] ?? otherwise);
    if (Number.isSafeInteger(value) && (value > 0 || values[name] === undefined)) return value;
    throw new TypeError(`--${name} must be a whole number above 0`);
  };
  const body = values.body ?? '1.2k';
  if (!isBodySize(body)) throw new TypeError(`--body must be one of ${Object.keys(BODIES).join(', ')}`);
  const perRound = number('per-round', BODIES[body].perRound);
  return {
    rivals: values.rivals ?? false,
    rounds: number('rounds', 5),
    perRound,
    perTurn: number('per-turn', Math.ceil(perRound / 10)),
    connections: number('connections', BODIES[body].connections),
    body,
    paceSeconds: number('pace-seconds', 6),
    memory: number('memory', 0),
    filled: values.long === true || values.events !== undefined ? number('events', 2_000_000) : 0,
    against: values.against ?? null,
    traces: values.traces === undefined ? null : share(values.traces),
    receipts: values.receipts ?? false,
    schema: values.schema ?? false,
    cores: values.cores ?? null,
    folder: values.folder ?? null,
    profile: values.profile ?? null,
    main: values.main ?? null,
  };
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0 && value <= 1) return value;
  throw new TypeError('--traces must be a number from 0 to 1');
}

function isBodySize(text: string): text is BodySize {
  return Object.hasOwn(BODIES, text);
}
