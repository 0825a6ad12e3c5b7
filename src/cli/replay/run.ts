import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '../../core/clock.ts';
import { MillraceError } from '../../core/errors.ts';
import { formatTarget } from '../../core/route.ts';
import type { SinkLog } from '../../core/sink.ts';
import { Dispatcher } from '../../deliver/dispatcher.ts';
import type { FeedStatus } from '../../deliver/feed-options.ts';
import { LiveSinks } from '../../deliver/live-sinks.ts';
import { aboutBytes } from '../../lib/units.ts';
import { planSinks } from '../../app/plan.ts';
import { openProof } from '../../privacy/proof/open.ts';
import { Backpressure } from '../../replay/backpressure.ts';
import { Checkpoint } from '../../replay/checkpoint.ts';
import { forgetFinished, noteFinished } from '../../replay/finished.ts';
import { Replay } from '../../replay/replay.ts';
import type { Tracker } from '../../replay/tracker.ts';
import type { Problem } from '../../replay/unit.ts';
import { openStore } from '../../storage/open.ts';
import { ActivityReport } from '../activity-report.ts';
import { AdminClient } from '../admin-client.ts';
import type { Io } from '../io.ts';
import { StatusLine } from '../status-line.ts';
import type { ReplayFlags, ReplayOrder } from './options.ts';
import type { ReplayWork } from './work.ts';

export type ReplaySummary = Awaited<ReturnType<typeof runReplay>>;

/** Milliseconds between two saves of the progress. */
const TICK_MS = 250;
/** Live events that may wait for a sink while a replay sends to it. */
const MOST_LIVE_WAITING = 1000;
/** Limits of events and body bytes on the way to the slowest sink. */
const AHEAD = { maxEvents: 5000, maxBytes: 32 * 2 ** 20 };
const LONGEST_TITLE = 200;
/** Different problems that are named. */
const NAMED = 1000;

/** Places that are named for one problem; the rest are counted. */
const NAMED_EACH = 10;

/** Runs one replay to its end, or until the signal of `io`. @throws MillraceError when it cannot begin or continue */
export async function runReplay(work: ReplayWork, flags: ReplayFlags, io: Io) {
  const { order, list } = work;
  const started = performance.now();
  const sinks = await planSinks(work.loaded, requireSinks(work));
  if (flags.resume !== true && order.finishedIn !== null) await forgetFinished(order.finishedIn, order);
  const checkpoint = await Checkpoint.open(order.state, { ...order, resume: flags.resume === true, list });
  const { id, bytes } = checkpoint.plan;
  let keep = true;
  const progress = new ReplayProgress(io, bytes);
  try {
    const backpressure = flags.yield ? backpressureOf(work, progress, [...sinks.keys()]) : null;
    const replay = new Replay({
      ...work,
      ...AHEAD,
      checkpoint,
      rate: order.rate,
      pseudonymiser: order.pseudonymiser,
      turn: (signal) => backpressure?.turn(signal),
      onProblem: (problem) => progress.problem(problem),
    });
    /** Nothing is left to resume. */
    const complete =
      checkpoint.before?.done === true ||
      (await play(replay, { id, work, sinks, backpressure, progress, io }));
    const { counts } = replay.tracker;
    /** Everything was read and delivered; then the folder of the state is removed. */
    const ok = complete && counts.problems === 0 && counts.refused === 0;
    keep = !ok;
    if (ok && order.finishedIn !== null) await noteFinished(order.finishedIn, order, id);
    const seconds = Math.round(performance.now() - started) / 1000;
    return { ok, complete, replay_id: id, ...counts, seconds, state: order.state };
  } finally {
    progress.end();
    await checkpoint.close(keep);
  }
}

interface Playing {
  readonly id: string;
  readonly work: ReplayWork;
  readonly sinks: Parameters<LiveSinks['open']>[0]['sinks'];
  readonly backpressure: Backpressure | null;
  readonly progress: ReplayProgress;
  readonly io: Io;
}

/** Opens the sinks, replays, and closes them. @returns false when interrupted */
async function play(
  replay: Replay,
  { id, work, sinks, backpressure, progress, io }: Playing,
): Promise<boolean> {
  const { order, loaded, destinations, erased } = work;
  const { config } = loaded;
  const { retryInitial, retryMax, giveUpAfter, sendTimeout, downAfter, maxPending, maxPendingBytes } =
    config.delivery;
  const report = new ActivityReport(loaded, { kind: 'replay', id, title: titleOf(order), unit: 'events' });
  const parts = { log: sinkLog(progress), clock: systemClock };
  const dispatcher = new Dispatcher({
    ...parts,
    logOf: () => replay.log,
    retry: { initial: retryInitial, max: retryMax, giveUpAfter },
    sendTimeout,
    downAfter,
    maxPending,
    maxPendingBytes,
    targetsOf: ({ type, handling }) => destinations.targetsFor(type, handling.redactions),
  });
  const over = new AbortController();
  const failed = new AbortController();
  // The timer also keeps the process alive: a sink without a connection would not.
  const tick = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await wait(TICK_MS, undefined, { signal: over.signal }).catch(() => undefined);
      erased.refresh();
      progress.show(replay.tracker, dispatcher.status());
      report.update({ done: replay.tracker.counts.selected, total: null });
      await replay.save();
    }
  };
  const ticking = tick().catch((error: unknown) => failed.abort(error));
  // Not awaited: a receiver that does not answer must not delay the end.
  void backpressure?.watch(over.signal);
  let complete = false;
  try {
    await new LiveSinks(dispatcher, {
      ...parts,
      proof: openProof(config),
      isErased: erased.has.bind(erased),
      openStore: (url) => openStore(url, config.storage),
    }).open({ sinks });
    dispatcher.begin();
    await replay.run(AbortSignal.any([io.signal, failed.signal]));
    complete = true;
  } catch (error) {
    if (failed.signal.aborted) throw failed.signal.reason;
    if (!io.signal.aborted) throw error;
  } finally {
    // Waits for events in flight: a delivery that is not saved would be repeated.
    await dispatcher.stop(complete ? io.signal : AbortSignal.timeout(config.shutdown.deadline));
    over.abort();
    await ticking;
    if (!failed.signal.aborted) await replay.save(complete);
    const state = complete ? 'done' : io.signal.aborted ? 'interrupted' : 'failed';
    await report.end({ done: replay.tracker.counts.selected, total: null, state });
  }
  return complete;
}

/** Title in the console; it contains no ids of users. */
function titleOf({ inputs, to }: ReplayOrder): string {
  const from = inputs.map((input) => (input.kind === 'path' ? basename(input.path) : input.name));
  const target = to === null ? 'the routes' : to.map(formatTarget).join(', ');
  return `${from.join(', ')} to ${target}`.slice(0, LONGEST_TITLE);
}

/** Names of the sinks that events can go to. @throws MillraceError config_invalid for a sink with unset variables */
function requireSinks({ loaded, order }: ReplayWork): string[] {
  const { config, unset, warnings } = loaded;
  const routed = config.routes.flatMap(({ to }) => to.map(({ sink }) => sink));
  const names =
    order.to?.map(({ sink }) => sink) ??
    (order.sinks.length === 0 ? routed : routed.filter((sink) => order.sinks.includes(sink)));
  const missing = unset.flatMap((key, index) =>
    names.some((name) => key.startsWith(`sinks.${name}.`)) ? [warnings[index] ?? key] : [],
  );
  if (missing.length > 0) throw new MillraceError('config_invalid', missing.join('\n'));
  return [...new Set(names)];
}

function backpressureOf(
  { loaded }: ReplayWork,
  { status }: ReplayProgress,
  sinks: readonly string[],
): Backpressure {
  return new Backpressure({
    ask: async () => (await AdminClient.of(loaded.config)?.operations().status())?.journal.cursors ?? null,
    sinks,
    atMost: MOST_LIVE_WAITING,
    onChange: (reason) =>
      status.note(reason === null ? 'continuing' : `waiting: ${reason}, and live traffic goes first`),
  });
}

/** Reports problems of sinks as lines on stderr. */
function sinkLog(progress: ReplayProgress): SinkLog {
  const warn = (fields: object, message: string): void => {
    const { sink = '', id, code, error, reason } = fields as Record<string, unknown>;
    // A replay has no dead letters: an event with an id was refused, and is named in refused.ndjson.
    const parts = [id === undefined ? message : 'refused', code, reason, error];
    const text = parts.filter((part) => part !== undefined && part !== null && part !== '').map(String);
    const where = [sink, id].filter((part) => part !== undefined).map(String);
    progress.problem({ where: where.join(': '), reason: text.join(': ') });
  };
  return { info: () => undefined, warn, error: warn };
}

/** Progress and problems of a replay on stderr. */
export class ReplayProgress {
  readonly status: StatusLine;
  /** Bytes of all files; 0 without files. */
  readonly #total: number;
  readonly #name: (line: string) => void;
  /** Where each problem was found, but for the first time. */
  readonly #again = new Map<string, { count: number; readonly places: string[] }>();

  constructor(io: Io, total: number) {
    this.status = new StatusLine(io);
    this.#total = total;
    this.#name = this.status.atMost(NAMED);
  }

  show({ read, counts }: Pick<Tracker, 'read' | 'counts'>, sinks: readonly FeedStatus[]): void {
    const { read: events, bytes } = read;
    const { selected } = counts;
    const total = this.#total;
    this.status.show(() => {
      const pace = total === 0 ? this.status.pace(selected, null) : this.status.pace(bytes, total, selected);
      return `read ${events} (${aboutBytes(bytes)}), done ${selected}${pace}${sinks.map(errorOf).join('')}`;
    });
  }

  /** Names a problem the first time that it occurs. */
  problem({ where, reason }: Problem): void {
    const again = this.#again.get(reason);
    if (again === undefined) {
      this.#name(`${where}: ${reason}`);
      if (this.#again.size < NAMED) this.#again.set(reason, { count: 0, places: [] });
    } else {
      again.count += 1;
      if (again.places.length < NAMED_EACH) again.places.push(where);
    }
  }

  /** Says how often each problem occurred. */
  end(): void {
    for (const [reason, { count, places }] of this.#again) {
      if (count === 0) continue;
      const others = count > places.length ? ` and ${count - places.length} more` : '';
      this.status.note(`${count + 1} times: ${reason}; also ${places.join(', ')}${others}`);
    }
    this.#again.clear();
  }
}

function errorOf({ sink, mode, lastError }: FeedStatus): string {
  return lastError === null ? '' : `; ${sink} ${mode}: ${lastError}`;
}
