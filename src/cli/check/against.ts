import { resolve } from 'node:path';
import { Places } from '../../archive/places.ts';
import { readArchive } from '../../archive/read.ts';
import type { Config, LoadedConfig } from '../../config/config.ts';
import { EXIT, MillraceError } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import { inColumns } from '../../lib/columns.ts';
import { visible } from '../../lib/visible.ts';
import { Comparison, type Fate, fatesBy, type Move, QUARANTINED } from '../../deliver/routes/compare.ts';
import { compileRoutes } from '../../deliver/routes/table.ts';
import { createValidator } from '../../receive/validate/envelope.ts';
import { configIfAny, withRedactions } from '../config-options.ts';
import { placed } from '../file-reports.ts';
import { closing, type Io } from '../io.ts';
import { openerOf } from '../key-options.ts';
import { openOperations } from '../operations.ts';
import { StatusLine } from '../status-line.ts';

/** What routing needs of an event. */
type PastEvent = Pick<Event, 'id' | 'type' | 'body'>;

/** Unreadable records named on stderr. */
const NAMED = 10;

/**
 * Routes the events of an archive or of the journal by two configs, and counts those that go elsewhere.
 * @param against path of an archive, or `journal`
 * @param current null without another config; the report then says only where events go
 * @throws MillraceError archive_unreadable, journal_missing, journal_in_use, receiver_unreachable
 */
export async function checkAgainst(
  io: Io,
  against: string,
  next: LoadedConfig,
  current: LoadedConfig | null,
) {
  const before = current ?? next;
  // Under the same envelope section all events are valid, as they were when they came.
  const [was, is] = [before, next].map(({ config }) => JSON.stringify(config.envelope));
  const validates = current === null || was !== is;
  const [then, now] = [fateUnder(before.config, validates), fateUnder(next.config, validates)];
  const comparison = new Comparison();
  const status = new StatusLine(io);
  const name = status.atMost(NAMED);
  let unreadable = 0;
  const onProblem = (where: string): void => {
    unreadable += 1;
    name(`warning: ${where}`);
  };
  const events =
    against === 'journal' ? journalEvents(before, onProblem) : archiveEvents(against, before, onProblem, io);
  try {
    for await (const event of events) {
      io.signal.throwIfAborted();
      comparison.add(event, then(event), now(event));
      status.show(() => `${comparison.events} events read${status.pace(comparison.events, null)}`);
    }
    status.clear();
  } catch (error) {
    if (!io.signal.aborted) throw error;
    throw new MillraceError('interrupted', `after ${comparison.events} events`, { cause: error });
  }
  if (unreadable > 0) io.setExit(EXIT.partial);
  return {
    against,
    /** File of the current config; null without one. */
    current: current?.file ?? null,
    next: next.file,
    events: comparison.events,
    /** Records that could not be read; the other counts do not include them. */
    unreadable,
    /** Events that go elsewhere. */
    changed: comparison.changed,
    moves: comparison.moves(),
    targets: comparison.targets(),
    sinks: differingSinks(before.config, next.config),
  };
}

/** The config of --current, else the usual one; null when there is none, or it is the new config itself. */
export async function currentConfig(
  io: Io,
  named: string | undefined,
  next: LoadedConfig,
): Promise<LoadedConfig | null> {
  const current = configIfAny({ config: named }, io);
  if (current === null || resolve(current.file) === resolve(next.file)) return null;
  return withRedactions(current, io);
}

/** @param validates whether the envelope section can quarantine events */
function fateUnder(config: Config, validates: boolean): (event: PastEvent) => Fate {
  const fateOf = fatesBy(compileRoutes(config.routes));
  if (!validates) return ({ type }) => fateOf(type);
  const validate = createValidator(config.envelope);
  return ({ body }) => {
    const verdict = validate(body);
    return verdict.isValid ? fateOf(verdict.envelope.type) : QUARANTINED;
  };
}

async function* archiveEvents(
  path: string,
  { file, config }: LoadedConfig,
  onProblem: (where: string) => void,
  io: Io,
): AsyncGenerator<PastEvent> {
  const opener = await openerOf({ config: file }, io, 'nothing');
  await using places = closing(new Places(config.storage));
  for await (const item of readArchive(path, { places, parts: true, signal: io.signal, opener })) {
    if (item.kind === 'problem') onProblem(`${placed(item.file, item.line)}: ${item.reason}`);
    else yield { id: item.record.id, type: item.record.event_type, body: item.body };
  }
}

/** The events that the journal holds now. */
async function* journalEvents(
  loaded: LoadedConfig,
  onProblem: (where: string) => void,
): AsyncGenerator<PastEvent> {
  await using open = closing(await openOperations(loaded));
  const { firstSeq, lastSeq } = (await open.operations.status()).journal;
  for (let after = firstSeq - 1; after < lastSeq;) {
    const page = await open.operations.listEvents({ after });
    for (const { key, id, gone, event_type: type, body_base64: body = '' } of page) {
      if (key > lastSeq) continue;
      if (gone === 'damaged') onProblem(`journal:${key}: the record is damaged`);
      // Erased and quarantined events have no id.
      if (id !== '') yield { id, type, body: Buffer.from(body, 'base64') };
    }
    after = page.at(-1)?.key ?? lastSeq;
  }
}

/** The JSON of `check --against`. */
type AgainstReport = Awaited<ReturnType<typeof checkAgainst>>;

/** Added, removed and changed sinks. */
function differingSinks(current: Config, next: Config) {
  /** Names of changed options; never their values. */
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

/** The options that the file sets. */
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

/** One decimal; only 0 is shown as 0.0 %, and only the whole as 100.0 %. */
function percent(part: number, all: number): string {
  const share = (part / Math.max(1, all)) * 100;
  if (part > 0 && share < 0.1) return 'under 0.1 %';
  if (part < all && share > 99.9) return 'over 99.9 %';
  return `${share.toFixed(1)} %`;
}

function number(count: number): string {
  return count.toLocaleString('en-US');
}
