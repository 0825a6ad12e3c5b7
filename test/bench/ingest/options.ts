import { parseArgs } from 'node:util';

export interface IngestOptions {
  /** Events of one round. */
  readonly perRound: number;
  readonly rounds: number;
  readonly connections: number;
  /** Events in the journal before a second receiver is measured too; 0 leaves that out. */
  readonly filled: number;
  readonly paceSeconds: number;
  /** Processes of a second receiver that is measured in the same rounds; 1 leaves that out. */
  readonly workers: number;
  readonly profile: string | null;
  /** Where the temporary folder is made; null takes the system's. */
  readonly folder: string | null;
}

export const HELP = `Flags:
  --rounds N        rounds, each with every server once (default 5)
  --per-round N     events of one round (default 50000)
  --connections N   keep-alive connections of the load generator (default 256)
  --pace-seconds N  length of the latency run at half the measured rate (default 6)
  --long            also measure a receiver whose journal holds --events already (about 4 GB of disk, some minutes)
  --events N        events in that journal (default 2000000; implies --long)
  --workers N       also measure a receiver with server.workers: N, in the same rounds
  --folder DIR      make the temporary folder here; put it on the disk that is to be measured
  --profile DIR     write a CPU profile of the receiver to this folder
`;

/** @throws TypeError for a flag that is not known or not a number */
export function parseOptions(argv: readonly string[]): IngestOptions {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: text,
      'per-round': text,
      connections: text,
      'pace-seconds': text,
      long: { type: 'boolean' },
      events: text,
      workers: text,
      folder: text,
      profile: text,
    },
  });
  const number = (
    name: 'rounds' | 'per-round' | 'connections' | 'pace-seconds' | 'events' | 'workers',
    otherwise: number,
  ) => {
    const value = Number(values[name] ?? otherwise);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw new TypeError(`--${name} must be a whole number above 0`);
  };
  return {
    rounds: number('rounds', 5),
    perRound: number('per-round', 50_000),
    connections: number('connections', 256),
    paceSeconds: number('pace-seconds', 6),
    filled: values.long === true || values.events !== undefined ? number('events', 2_000_000) : 0,
    workers: number('workers', 1),
    folder: values.folder ?? null,
    profile: values.profile ?? null,
  };
}
