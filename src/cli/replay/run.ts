import { basename } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '../../core/clock.ts';
import { MillraceError } from '../../core/errors.ts';
import { formatTarget } from '../../core/route.ts';
import type { SinkLog } from '../../core/sink.ts';
import type { ObjectStore } from '../../core/storage.ts';
import { Dispatcher } from '../../deliver/dispatcher.ts';
import type { FeedStatus } from '../../deliver/feed-options.ts';
import { LiveSinks } from '../../deliver/live-sinks.ts';
import { formatAmount } from '../../lib/amount.ts';
import { planSinks } from '../../app/plan.ts';
import { openProof } from '../../privacy/proof/open.ts';
import { Backpressure } from '../../replay/backpressure.ts';
import { Checkpoint } from '../../replay/checkpoint.ts';
import type { Counts } from '../../replay/counts.ts';
import { forgetFinished, noteFinished } from '../../replay/finished.ts';
import { Replay } from '../../replay/replay.ts';
import type { Problem, ReadCounts } from '../../replay/unit.ts';
import { openStore } from '../../storage/open.ts';
import { ActivityReport } from '../activity-report.ts';
import { AdminClient } from '../admin-client.ts';
import type { Io } from '../io.ts';
import { StatusLine } from '../status-line.ts';
import type { ReplayFlags, ReplayOrder } from './options.ts';
import type { ReplayWork } from './work.ts';

export interface ReplaySummary extends Counts {
  /** Everything was read and delivered. */
  readonly ok: boolean;
  /** Nothing is left to resume. */
  readonly complete: boolean;
  readonly replay_id: string;
  readonly seconds: number;
  /** Folder of the state; it is gone when all is well. */
  readonly state: string;
}

/** Milliseconds between two looks at how far it is, each of which is made durable. */
const TICK = 250;
/** Live events that may wait for a sink while a replay sends to it. */
const LIVE_FIRST = 1000;
/** Events and body bytes on the way to the slowest sink at most. */
const AHEAD = { maxEvents: 5000, maxBytes: 32 * 2 ** 20 };
/** Characters of a title at most. */
const TITLE = 200;

/** Runs one replay to its end, or until the signal of `io`. @throws MillraceError when it cannot begin or continue */
export async function runReplay(work: ReplayWork, flags: ReplayFlags, io: Io): Promise<ReplaySummary> {
  const { order, list } = work;
  const started = performance.now();
  const sinks = await planSinks(work.loaded, requireSinks(work));
  if (flags.resume !== true && order.finishedIn !== null) await forgetFinished(order.finishedIn, order);
  const checkpoint = await Checkpoint.open(order.state, { ...order, resume: flags.resume === true, list });
  let keep = true;
  try {
    const progress = new ReplayProgress(io, checkpoint.plan.bytes);
    const backpressure = backpressureOf(work, flags, progress, [...sinks.keys()]);
    const replay = new Replay({
      ...work,
      ...AHEAD,
      checkpoint,
      rate: order.rate,
      pseudonymiser: (event) => order.pseudonymiser?.apply(event) ?? event,
      turn: (signal) => backpressure?.turn(signal),
      onProblem: (problem) => progress.problem(problem),
    });
    const report = new ActivityReport(work.loaded, {
      kind: 'replay',
      id: checkpoint.plan.id,
      title: titleOf(order),
      unit: 'events',
    });
    const playing = { work, sinks, backpressure, progress, report, io };
    const complete = checkpoint.before?.done === true || (await play(replay, playing));
    const { counts } = replay;
    const ok = complete && counts.problems === 0 && counts.refused === 0;
    keep = !ok;
    if (ok && order.finishedIn !== null) await noteFinished(order.finishedIn, order, checkpoint.plan.id);
    const seconds = Math.round(performance.now() - started) / 1000;
    return { ok, complete, replay_id: checkpoint.plan.id, ...counts, seconds, state: order.state };
  } finally {
    await checkpoint.close(keep);
  }
}

interface Playing {
  readonly work: ReplayWork;
  readonly sinks: Parameters<LiveSinks['open']>[0]['sinks'];
  readonly backpressure: Backpressure | null;
  readonly progress: ReplayProgress;
  readonly report: ActivityReport;
  readonly io: Io;
}

/** Opens the sinks, plays, closes them. True when nothing is left to do, false when interrupted. */
async function play(replay: Replay, playing: Playing): Promise<boolean> {
  const { work, sinks, backpressure, progress, report, io } = playing;
  const { delivery, shutdown } = work.loaded.config;
  const { retryInitial, retryMax, giveUpAfter, sendTimeout, downAfter, maxPending, maxPendingBytes } =
    delivery;
  const parts = { log: sinkLog(progress), clock: systemClock };
  const dispatcher = new Dispatcher({
    ...parts,
    logOf: () => replay.log,
    retry: { initial: retryInitial, max: retryMax, giveUpAfter },
    sendTimeout,
    downAfter,
    maxPending,
    maxPendingBytes,
    targetsOf: ({ type, handling }) => work.destinations.targetsFor(type, handling.redactions),
  });
  const over = new AbortController();
  const failed = new AbortController();
  // It also keeps the process: a sink without a connection would not.
  const ticking = tick(replay, dispatcher, playing, over.signal).catch((error: unknown) =>
    failed.abort(error),
  );
  // Not waited for at the end: a receiver that does not answer must not hold it up.
  void backpressure?.watch(over.signal);
  let complete = false;
  try {
    const { config } = work.loaded;
    const stores = (url: string): Promise<ObjectStore> => openStore(url, config.storage);
    const isErased = work.erased.has.bind(work.erased);
    const around = { ...parts, proof: openProof(config), isErased, openStore: stores };
    await new LiveSinks(dispatcher, around).open({ sinks });
    dispatcher.begin();
    await replay.run(AbortSignal.any([io.signal, failed.signal]));
    complete = true;
  } catch (error) {
    if (failed.signal.aborted) throw failed.signal.reason;
    if (!io.signal.aborted) throw error;
  } finally {
    // What is on its way is waited for; what was delivered and not noted would be sent again.
    await dispatcher.stop(complete ? io.signal : AbortSignal.timeout(shutdown.deadline));
    over.abort();
    await ticking;
    if (!failed.signal.aborted) await replay.save(complete);
    const state = complete ? 'done' : io.signal.aborted ? 'interrupted' : 'failed';
    await report.end({ done: replay.counts.selected, total: null, state });
  }
  return complete;
}

async function tick(
  replay: Replay,
  dispatcher: Dispatcher,
  { work, progress, report }: Playing,
  over: AbortSignal,
): Promise<void> {
  while (!over.aborted) {
    await wait(TICK, undefined, { signal: over }).catch(() => undefined);
    work.erased.refresh();
    const { counts } = replay;
    progress.show(replay.read, counts, dispatcher.status());
    report.update({ done: counts.selected, total: null });
    await replay.save();
  }
}

/** From where to where, without anybody's id. */
function titleOf({ inputs, to }: ReplayOrder): string {
  const from = inputs.map((input) => (input.kind === 'path' ? basename(input.path) : input.name));
  return `${from.join(', ')} to ${to === null ? 'the routes' : to.map(formatTarget).join(', ')}`.slice(
    0,
    TITLE,
  );
}

/** Names of the sinks that events can go to. @throws MillraceError config_invalid when one cannot be opened as it stands */
function requireSinks({ loaded, order }: ReplayWork): string[] {
  const { config, unset, warnings } = loaded;
  const routed = config.routes.flatMap(({ to }) => to.map(({ sink }) => sink));
  const names =
    order.to?.map(({ sink }) => sink) ??
    (order.sinks.length === 0 ? routed : routed.filter((sink) => order.sinks.includes(sink)));
  const holes = unset.flatMap((key, index) =>
    names.some((name) => key.startsWith(`sinks.${name}.`)) ? [warnings[index] ?? key] : [],
  );
  if (holes.length > 0) throw new MillraceError('config_invalid', holes.join('\n'));
  return [...new Set(names)];
}

function backpressureOf(
  { loaded }: ReplayWork,
  flags: ReplayFlags,
  progress: ReplayProgress,
  sinks: readonly string[],
): Backpressure | null {
  if (!flags.yield) return null;
  return new Backpressure({
    ask: async () => (await AdminClient.of(loaded.config)?.operations().status())?.journal.cursors ?? null,
    sinks,
    atMost: LIVE_FIRST,
    onChange: (reason) =>
      progress.status.note(
        reason === null ? 'continuing' : `waiting: ${reason}, and live traffic goes first`,
      ),
  });
}

/** What goes wrong at a sink, as lines for a person. */
function sinkLog(progress: ReplayProgress): SinkLog {
  const say = (fields: object, message: string): void => {
    const { sink = '', id, code, error, reason } = fields as Record<string, unknown>;
    // There are no dead letters without a journal: what a sink refuses is named in the state's folder.
    const parts = [id === undefined ? message : 'refused', id, code, reason, error];
    const text = parts.filter((part) => part !== undefined && part !== null && part !== '').map(String);
    progress.problem({ where: String(sink), reason: text.join(': ') });
  };
  return { info: () => undefined, warn: say, error: say };
}

/** Problems that have a line of their own; the rest are counted. */
const SHOWN = 1000;

/** Progress of a replay, on stderr: how much is read and delivered, the rate, what is waited for. */
export class ReplayProgress {
  readonly status: StatusLine;
  readonly #total: number;
  readonly #name: (line: string) => void;
  #first: { readonly delivered: number; readonly bytes: number } | null = null;

  /** @param total bytes of all files */
  constructor(io: Io, total: number) {
    this.status = new StatusLine(io);
    this.#total = total;
    this.#name = this.status.atMost(SHOWN);
  }

  show(read: ReadCounts, settled: Counts, sinks: readonly FeedStatus[] = []): void {
    const delivered = settled.selected;
    this.#first ??= { delivered, bytes: read.bytes };
    this.status.show(() => `${this.#summary(read, settled)}${this.#left(read.bytes)}${trouble(sinks)}`);
  }

  problem({ where, reason }: Problem): void {
    this.#name(`${where}: ${reason}`);
  }

  #summary({ read, bytes }: ReadCounts, { selected }: Counts): string {
    const rate = (selected - (this.#first?.delivered ?? 0)) / this.status.seconds;
    return `read ${read} (${formatAmount(bytes)}), done ${selected}, ${Math.round(rate)}/s`;
  }

  #left(bytes: number): string {
    if (this.#total === 0 || bytes === 0) return '';
    const share = Math.min(1, bytes / this.#total);
    const rate = (bytes - (this.#first?.bytes ?? 0)) / this.status.seconds;
    const left = rate <= 0 ? '' : `, ${Math.ceil(Math.max(0, this.#total - bytes) / rate)} s left`;
    return `, ${Math.round(share * 100)} %${left}`;
  }
}

function trouble(sinks: readonly FeedStatus[]): string {
  return sinks
    .flatMap(({ sink, mode, lastError }) => (lastError === null ? [] : [`; ${sink} ${mode}: ${lastError}`]))
    .join('');
}
