import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Event } from '../../core/event.ts';
import type { AppendResult, Ingest, IngestObserver, InvalidReason } from '../../core/ingest.ts';
import type { Journal } from '../../core/journal.ts';
import type { SchemaReport } from '../../core/schema.ts';
import type { SinkLog } from '../../core/sink.ts';
import { type FirstSeen, SchemaMemory, type TypeMemory } from './memory.ts';
import { changeEvent, type EnvelopeNames, isChangeEvent, newsOf, type TypeNews } from './news.ts';
import { reportOf } from './report.ts';
import { restoreMemory, textOf } from './saved-memory.ts';

/** Checkpoints of the memory, and of the last seq that it has seen. */
export const MEMORY_KEY = 'schema';
const SEQ_KEY = 'schema.seq';
/** News of this time are reported together. */
const TICK_MS = 200;
/** Pauses between two saves of the seq, and of counts and times without news. */
const SAVE_SEQ_MS = 2000;
const SAVE_COUNTS_MS = 600_000;
/** Largest share of the time that goes into saving. */
const SAVING_SHARE = 0.01;
/** News that wait to be sent as events. */
const MOST_UNSENT = 1000;
/** Events before a crash that are looked at after the start, and one page of them. */
const MOST_MISSED = 20_000;
const PAGE = { count: 400, bytes: 4 * 2 ** 20 };

export interface SchemaSettings {
  readonly enabled: boolean;
  /** `sink` or `sink:destination`; null sends no events. */
  readonly alertTo: string | null;
}

export interface WatchOptions {
  readonly clock: Clock;
  readonly log: SinkLog;
  readonly store: Pick<Journal, 'checkpoints' | 'lastSeq' | 'read'>;
  /** Accepts the events that report news. */
  readonly ingest: () => Ingest;
  /** Current settings; a reload can change them. */
  readonly settings: () => SchemaSettings;
  readonly envelope: () => EnvelopeNames;
}

/**
 * Remembers what accepted events look like, and reports new types, fields and kinds in the log, as an event, and in metrics.
 *
 * An event is looked at when it is accepted, while `LookBudget` allows it; otherwise it is only counted. News are reported before
 * they are saved: after a crash they can be reported again, but are not lost.
 */
export class SchemaWatch implements IngestObserver {
  readonly #options: WatchOptions;
  readonly #observer: IngestObserver;
  readonly #memory: SchemaMemory;
  readonly #budget: LookBudget;
  #looked = 0;
  #passed = 0;
  #news: FirstSeen[] = [];
  #firstSeen = { types: 0, fields: 0, kinds: 0 };
  #unsent: TypeNews[] = [];
  #hasReportedFull = false;
  /** The newest event seen, and the newest that a checkpoint notes. */
  #seq = 0;
  #savedSeq = 0;
  /** Events after this one and up to `upTo` came before the start; null when they were looked at. */
  #missed: { after: number; readonly upTo: number } | null = null;
  /** The memory has news that are not saved, or only counts and times. */
  #isDirty = false;
  #hasCounts = false;
  /** Monotonic times of the last saves, and of the earliest next save of the memory. */
  #savedAt: number;
  #savedSeqAt: number;
  #notBefore = 0;
  #ticking: Promise<unknown> = Promise.resolve();
  #cancelTick: (() => void) | null = null;
  #isStopped = false;

  private constructor(observer: IngestObserver, options: WatchOptions) {
    const now = options.clock.monotonic();
    this.#observer = observer;
    this.#options = options;
    this.#memory = new SchemaMemory((first) => this.#news.push(first));
    this.#budget = new LookBudget(now);
    this.#savedAt = now;
    this.#savedSeqAt = now;
  }

  /**
   * Reads the memory from the journal, and begins to look at events that came in since it was saved.
   * @param observer gets everything first
   */
  static async open(observer: IngestObserver, options: WatchOptions): Promise<SchemaWatch> {
    const watch = new SchemaWatch(observer, options);
    const { checkpoints, lastSeq } = options.store;
    const text = await checkpoints.load(MEMORY_KEY);
    let noted = await checkpoints.load(SEQ_KEY);
    if (noted !== null && !/^\d+$/.test(noted)) {
      options.log.warn(
        { checkpoint: SEQ_KEY, lastSeq },
        'the checkpoint is damaged; events that the schema memory has not seen yet are not looked at',
      );
      noted = null;
    }
    // Noted at once, so that a crash before the first save is noticed.
    if (noted === null) await checkpoints.save(SEQ_KEY, String(lastSeq));
    const seq = Math.min(Number(noted ?? lastSeq), lastSeq);
    try {
      restoreMemory(text, watch.#memory);
    } catch (error) {
      options.log.warn({ error: messageOf(error) }, 'the schema memory cannot be read; it starts empty');
    }
    watch.#hasReportedFull = watch.#isFull;
    watch.#seq = seq;
    watch.#savedSeq = seq;
    if (options.settings().enabled && seq < lastSeq) {
      watch.#missed = { after: Math.max(seq, lastSeq - MOST_MISSED), upTo: lastSeq };
      watch.#tickSoon(TICK_MS);
    }
    return watch;
  }

  stored(event: Event, result: AppendResult): void {
    this.#observer.stored(event, result);
    if (result.status === 'accepted') this.#see(event, result.seq);
  }

  storedInvalid(event: Event, reasons: readonly InvalidReason[], result: AppendResult): void {
    this.#observer.storedInvalid(event, reasons, result);
  }

  /** What it has done since the start, and how many fields are remembered now. */
  get figures() {
    return {
      firstSeen: this.#firstSeen,
      /** Events that were looked at, and that only were counted. */
      looked: this.#looked,
      passed: this.#passed,
      fields: this.#memory.fields,
      isFull: this.#isFull,
    };
  }

  report(): SchemaReport {
    return reportOf(this.#memory, this.#options.settings().enabled);
  }

  /** Reports and saves everything. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelTick?.();
    await this.#ticking;
    await this.#tick();
  }

  get #isFull(): boolean {
    return this.#memory.isFull || [...this.#memory.types.values()].some(({ isFull }) => isFull);
  }

  /** Never throws: the caller has to answer for the event. */
  #see(event: Event, seq: number): void {
    const { clock, settings, log } = this.#options;
    if (isChangeEvent(event) || !settings().enabled) return;
    try {
      if (seq > this.#seq) this.#seq = seq;
      this.#hasCounts = true;
      this.#tickSoon(TICK_MS);
      const type = this.#memory.count(event.type, event.receivedAt, event);
      if (type === null) return;
      const begun = clock.monotonic();
      const bytes = this.#budget.bytesFor(type, begun);
      if (bytes === 0) {
        this.#passed += 1;
        return;
      }
      this.#memory.look(type, event, bytes);
      this.#looked += 1;
      this.#budget.spend(clock.monotonic() - begun);
    } catch (error) {
      log.error({ error: messageOf(error) }, 'an event could not be looked at');
    }
  }

  #tickSoon(ms: number): void {
    if (this.#isStopped || this.#cancelTick !== null) return;
    this.#cancelTick = this.#options.clock.after(ms, () => {
      this.#ticking = this.#tick().then((nextMs) => {
        this.#cancelTick = null;
        if (nextMs !== null) this.#tickSoon(nextMs);
      });
    });
  }

  /** @returns milliseconds until the next tick; null when everything is reported and saved */
  async #tick(): Promise<number | null> {
    const { settings, log } = this.#options;
    try {
      await this.#lookAtMissed();
      const news = newsOf(this.#news);
      this.#news = [];
      for (const each of news) this.#report(each);
      this.#reportFull();
      if (news.length > 0) this.#isDirty = true;
      if (settings().alertTo === null) this.#unsent = [];
      else this.#unsent = [...this.#unsent, ...news].slice(-MOST_UNSENT);
      await this.#sendNews();
      await this.#save();
    } catch (error) {
      // A full journal; a journal that fails ends the process.
      this.#isDirty = true;
      log.warn({ error: messageOf(error) }, 'the schema memory could not be saved; it is tried again');
      return SAVE_SEQ_MS;
    }
    const isDone =
      this.#missed === null && this.#news.length === 0 && !this.#isDirty && this.#seq === this.#savedSeq;
    return isDone ? null : TICK_MS;
  }

  /** Looks at one page of the events that came in before the start. */
  async #lookAtMissed(): Promise<void> {
    const missed = this.#missed;
    if (missed === null || this.#isStopped) return;
    const { store, log } = this.#options;
    try {
      const page = await store.read(missed.after, PAGE);
      for (const event of page)
        if (event.seq <= missed.upTo && event.handling.erased !== true) this.#see(event, event.seq);
      missed.after = page.at(-1)?.seq ?? missed.upTo;
      if (missed.after >= missed.upTo) this.#missed = null;
    } catch (error) {
      this.#missed = null;
      log.warn({ error: messageOf(error) }, 'earlier events could not be read for the schema memory');
    }
  }

  async #save(): Promise<void> {
    const { store, clock } = this.#options;
    const now = clock.monotonic();
    const seq = this.#missed?.after ?? this.#seq;
    const areCountsDue = this.#isStopped || now - this.#savedAt > SAVE_COUNTS_MS;
    if (this.#isDirty || (this.#hasCounts && areCountsDue)) {
      // The seq is saved only after the memory of its events.
      if (now < this.#notBefore && !this.#isStopped) return;
      this.#isDirty = false;
      this.#hasCounts = false;
      this.#savedAt = now;
      const text = textOf(this.#memory);
      this.#notBefore = now + (clock.monotonic() - now) / SAVING_SHARE;
      await store.checkpoints.save(MEMORY_KEY, text);
    }
    if (seq === this.#savedSeq || (now - this.#savedSeqAt < SAVE_SEQ_MS && !this.#isStopped)) return;
    await store.checkpoints.save(SEQ_KEY, String(seq));
    this.#savedSeq = seq;
    this.#savedSeqAt = now;
  }

  #report({ type, isNew, isSettled, fields, more, kinds, known }: TypeNews): void {
    const { log } = this.#options;
    this.#firstSeen.types += isNew ? 1 : 0;
    this.#firstSeen.fields += isNew ? 0 : fields.length + more;
    this.#firstSeen.kinds += kinds.length;
    const detail = {
      type,
      ...(fields.length === 0 ? {} : { fields }),
      ...(more === 0 ? {} : { more }),
      ...(kinds.length === 0 ? {} : { kinds: kinds.map(({ path, kind }) => `${path} ${kind}`) }),
    };
    if (isNew) log.info({ ...detail, fields: known }, 'first event of this type');
    else if (isSettled) log.warn(detail, 'events of this type have changed');
    else log.info(detail, 'events of this type have more fields');
  }

  #reportFull(): void {
    if (this.#hasReportedFull || !this.#isFull) return;
    this.#hasReportedFull = true;
    this.#options.log.warn(
      { types: this.#memory.types.size, fields: this.#memory.fields },
      'the schema memory is full; new types and fields may not be reported',
    );
  }

  /** Sends news as events to `alertTo`. */
  async #sendNews(): Promise<void> {
    const { settings, ingest, envelope, clock } = this.#options;
    const { alertTo } = settings();
    if (alertTo === null) return;
    for (let [next] = this.#unsent; next !== undefined; [next] = this.#unsent) {
      const event = changeEvent(next, envelope(), clock.now());
      await ingest().accept(event, { handling: { only: [alertTo] } });
      this.#unsent.shift();
    }
  }
}

/** Share of the time that may go into looking at events, and milliseconds of it that can be saved up. */
const LOOK_SHARE = 0.005;
const BURST_MS = 2;
/** Beyond that, these many events of each type are looked at in each second; of large ones the beginning. */
const ALWAYS = 8;
const ALWAYS_BYTES = 64 * 1024;
/** With this many milliseconds of debt nothing is looked at, so that senders cannot use up the time. */
const MOST_DEBT_MS = 100;

/** Limits the time for looking at events: all while there is time, in a flood some of each type. */
class LookBudget {
  #leftMs = BURST_MS;
  #updated: number;
  /** Events of each type that were looked at beyond the budget in this second. */
  readonly #extra = new Map<TypeMemory, number>();
  #second: number;

  constructor(now: number) {
    this.#updated = now;
    this.#second = now;
  }

  /** How many bytes of an event may be looked at now; 0 for none. */
  bytesFor(type: TypeMemory, now: number): number {
    this.#leftMs = Math.min(BURST_MS, this.#leftMs + (now - this.#updated) * LOOK_SHARE);
    this.#updated = now;
    if (now - this.#second >= 1000) {
      this.#second = now;
      this.#extra.clear();
    }
    if (this.#leftMs > 0) return Infinity;
    const extra = this.#extra.get(type) ?? 0;
    if (extra >= ALWAYS || this.#leftMs < -MOST_DEBT_MS) return 0;
    this.#extra.set(type, extra + 1);
    return ALWAYS_BYTES;
  }

  spend(ms: number): void {
    this.#leftMs -= ms;
  }
}
