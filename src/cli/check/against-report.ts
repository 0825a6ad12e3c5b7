import type { Config } from '../../config/config.ts';
import type { Fate, Move, TargetCount } from '../../route/compare.ts';
import { inColumns } from '../../lib/columns.ts';
import { visible } from '../../lib/visible.ts';

/** What `check --against` found; its JSON is this. */
export interface AgainstReport {
  readonly against: string;
  /** The config compared with; null when there was none. */
  readonly current: string | null;
  readonly next: string;
  readonly events: number;
  /** Records that could not be read, and are in no count. */
  readonly unreadable: number;
  /** Events that go elsewhere. */
  readonly changed: number;
  readonly moves: readonly Move[];
  readonly targets: readonly TargetCount[];
  readonly sinks: {
    readonly added: readonly string[];
    readonly removed: readonly string[];
    /** Names of the options that differ; never their values. */
    readonly changed: Readonly<Record<string, readonly string[]>>;
  };
}

/** Sinks that only one of the configs has, and those that are not the same in both. */
export function differingSinks(current: Config, next: Config): AgainstReport['sinks'] {
  const changed: Record<string, readonly string[]> = {};
  for (const [name, sink] of Object.entries(next.sinks)) {
    const before = current.sinks[name];
    const keys = before === undefined ? [] : differingKeys(flat(before), flat(sink));
    if (keys.length > 0) changed[name] = keys;
  }
  return {
    added: Object.keys(next.sinks).filter((name) => current.sinks[name] === undefined),
    removed: Object.keys(current.sinks).filter((name) => next.sinks[name] === undefined),
    changed,
  };
}

/** What is written; a description only follows from it. */
function flat(
  sink: Config['sinks'][string] & { readonly description?: unknown },
): Readonly<Record<string, unknown>> {
  return { ...sink, options: null, description: null, ...sink.options };
}

function differingKeys(a: Readonly<Record<string, unknown>>, b: Readonly<Record<string, unknown>>): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
}

export function renderAgainst(report: AgainstReport): string {
  const { against, current, next, events, unreadable, changed, moves, targets } = report;
  const count = `${number(events)} events`;
  const lines = [
    current === null
      ? `${count} of ${against} under ${next}`
      : `${count} of ${against}: ${current} → ${next}`,
    ...sinkLines(report),
    ...moves.flatMap((move) => moveLines(move, events)),
  ];
  const unchanged = `leaves ${percent(events - changed, events)} where they go now`;
  if (current !== null) lines.push(changed === 0 ? 'every event goes where it went before' : unchanged);
  if (unreadable > 0) lines.push(`${number(unreadable)} records could not be read and are not counted`);
  const head = current === null ? ['TARGET', 'EVENTS'] : ['TARGET', 'NOW', 'THEN'];
  const rows = targets.map(({ target, current: now, next: then }) =>
    current === null ? [target, number(then)] : [target, number(now), number(then)],
  );
  return [...lines, '', inColumns([head, ...rows])].join('\n');
}

function moveLines({ from, to, events, examples }: Move, all: number): string[] {
  const share = `${percent(events, all)} of ${number(all)} events`;
  const named = examples.reduce((sum, example) => sum + example.events, 0);
  return [
    moved(share, from, to),
    ...examples.map(({ type, id, events: count }) => visible(`    ${number(count)} ${type}, such as ${id}`)),
    ...(named < events ? [`    ${number(events - named)} of other types`] : []),
  ];
}

function moved(share: string, from: Fate, to: Fate): string {
  const [source, target] = [from.join(' and '), to.join(' and ')];
  if (from.length === 0) return `adds ${share} to ${target}`;
  return to.length === 0
    ? `takes ${share} away from ${source}`
    : `moves ${share} from ${source} to ${target}`;
}

function sinkLines({ sinks: { added, removed, changed } }: AgainstReport): string[] {
  return [
    ...added.map((name) => `new sink ${name}: it starts with the events after the change`),
    ...removed.map((name) => `sink ${name} goes`),
    ...Object.entries(changed).map(([name, keys]) => `sink ${name} changes: ${keys.join(', ')}`),
  ];
}

/** One decimal; what is not nothing is never shown as 0.0 %, nor what is not all as 100.0 %. */
function percent(part: number, all: number): string {
  const share = (part / Math.max(1, all)) * 100;
  if (part > 0 && share < 0.1) return 'under 0.1 %';
  if (part < all && share > 99.9) return 'over 99.9 %';
  return `${share.toFixed(1)} %`;
}

function number(count: number): string {
  return count.toLocaleString('en-US');
}
