import type { Route } from '../../src/core/route.ts';
import { SqliteJournal, type SqliteJournalOptions } from '../../src/journal/sqlite-journal.ts';
import { Store } from '../../src/journal/store.ts';
import { AcceptedRoutes } from '../../src/route/accepted.ts';
import { ManualClock } from '../deliver/support.ts';
import { InlineWriter } from '../histories/process.ts';
import { makeEvent } from '../support/events.ts';

export const SINKS = ['a', 'b'] as const;
export type SinkName = (typeof SINKS)[number];
/** For each kind of event the sinks that get it; together they name both sinks. */
export type Table = readonly [readonly SinkName[], readonly SinkName[]];

const RETENTION = 1000;

/** What an id says of its event, to the journal and to the model alike. */
const kindOf = (id: number): 0 | 1 => (id % 4 < 2 ? 0 : 1);

/**
 * The real journal, one step after the other, and each step in the model's words with what was seen of it. What is said of
 * the journal comes from its answers only; how things should be is the model's to say.
 */
export class History {
  readonly #clock = new ManualClock();
  readonly #options: SqliteJournalOptions;
  #writer: InlineWriter;
  #journal: SqliteJournal;
  #clearedTo = 0;
  #sent = new Map<SinkName, number>(SINKS.map((sink) => [sink, 0]));
  readonly steps: string[] = ['init'];

  private constructor(folder: string) {
    this.#options = {
      path: folder,
      retention: RETENTION,
      maxBytes: 1e9,
      dedupWindow: 1e9,
      create: true,
      clock: this.#clock,
      onFailure: (error) => {
        throw error;
      },
    };
    this.#writer = new InlineWriter(new Store(this.#options));
    this.#journal = new SqliteJournal(this.#writer, this.#options);
  }

  static async begin(folder: string): Promise<History> {
    const history = new History(folder);
    for (const sink of SINKS) await history.#journal.openCursor(sink);
    await history.reroute([['a'], ['a', 'b']]);
    return history;
  }

  async accept(ids: readonly number[]): Promise<void> {
    // A segment for each batch: they are cleared away as a whole.
    await this.#writer.call({ op: 'maintain', args: [this.#clock.now() + RETENTION / 8] });
    const answers = await Promise.all(ids.map((id) => this.#journal.accept(this.#event(id))));
    const repeated = ids.filter((_, index) => answers[index]?.status === 'duplicate');
    const seqs = answers.flatMap((answer) => (answer.status === 'accepted' ? [answer.seq] : []));
    this.#say(
      ...ids.map(received),
      // Those told "repeated" of an event of this very batch are among them.
      `write.expect(memory.repeated.map(e => e.id) == ${set(repeated)} and memory.frame.map(r => r.seq) == ${set(seqs)})`,
      'sync',
    );
  }

  /** One event, and the process is killed before anybody is answered. */
  async acceptAndDie(id: number): Promise<void> {
    const before = this.#journal.lastSeq;
    void this.#journal.accept(this.#event(id)).catch(() => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    this.#kill();
    await this.#open();
    // An id that is known leaves no trace, written or not.
    await this.#opened(received(id), 'write', `crash(${this.#journal.lastSeq > before})`);
  }

  async restart(kill: boolean): Promise<void> {
    if (kill) this.#kill();
    else {
      await this.flush();
      await this.#journal.close();
    }
    await this.#open();
    await this.#opened('crash(false)');
  }

  /** A sink takes what is next, has it on its disk, and confirms it. */
  async deliver(sink: SinkName, count: number): Promise<void> {
    const routes = new AcceptedRoutes(await this.#journal.routes());
    for (const event of await this.#journal.read(this.#sent.get(sink) ?? 0, { count, bytes: 1e9 })) {
      const isDue = routes.targetsOf(event).some((target) => target.sink === sink);
      this.#say(
        `deliver("${sink}").expect(memory.sent.get("${sink}") == ${event.seq}
          and memory.unsynced.get("${sink}") == ${set(isDue ? [event.seq] : [])})`,
      );
      if (isDue) this.#say(`syncFile("${sink}")`);
      this.#say(`confirm("${sink}")`);
      this.#journal.moveCursor(sink, event.seq);
      this.#sent.set(sink, event.seq);
    }
  }

  async flush(): Promise<void> {
    const before = await this.#writer.call({ op: 'cursors.known', args: [] });
    await this.#journal.flush();
    const after = await this.#writer.call({ op: 'cursors.known', args: [] });
    if (JSON.stringify(before) !== JSON.stringify(after)) this.#say('flush');
    this.#say(await this.#cursors());
  }

  async reroute(table: Table): Promise<void> {
    const routes = table.map((to, kind): Route => {
      return { match: [`k${kind}.`], to: to.map((sink) => ({ sink, destination: null })) };
    });
    await this.#journal.acceptUnder(routes);
    const of = (kind: 0 | 1): string => `Set(${table[kind].map((sink) => `"${sink}"`).join()})`;
    this.#say(`reload(Map(0 -> ${of(0)}, 1 -> ${of(1)}))`);
  }

  /** All that is past its retention and settled goes. */
  async retain(): Promise<void> {
    await this.flush();
    const later = this.#clock.now() + 10 * RETENTION;
    while ((await this.#writer.call({ op: 'maintain', args: [later] })) === true);
    const { firstSeq } = await this.#journal.status();
    if (firstSeq - 1 <= this.#clearedTo) return;
    this.#clearedTo = firstSeq - 1;
    // Whether the ids are sealed is seen when they come again.
    this.#say(
      '{ if (disk.sealedTo < disk.lastSeq) seal else nothing }',
      `clear(${this.#clearedTo})`,
      this.#state(),
    );
  }

  async end(): Promise<void> {
    await this.flush();
    await this.#journal.close();
  }

  #event(id: number): ReturnType<typeof makeEvent> {
    return makeEvent({ id: `e${id}`, type: `k${kindOf(id)}.x`, receivedAt: this.#clock.now() });
  }

  #kill(): void {
    this.#writer.dead = true;
    void this.#writer.close();
  }

  async #open(): Promise<void> {
    this.#writer = new InlineWriter(new Store(this.#options));
    this.#journal = new SqliteJournal(this.#writer, this.#options);
    for (const sink of SINKS) this.#sent.set(sink, await this.#journal.openCursor(sink));
  }

  async #opened(...crash: readonly string[]): Promise<void> {
    this.#say(...crash, 'open', this.#state(), await this.#cursors());
  }

  #state(): string {
    return `nothing.expect(disk.lastSeq == ${this.#journal.lastSeq} and disk.clearedTo == ${this.#clearedTo})`;
  }

  async #cursors(): Promise<string> {
    const known = (await this.#writer.call({ op: 'cursors.known', args: [] })) as [string, number][];
    return `nothing.expect(disk.cursors == Map(${known.map(([sink, seq]) => `"${sink}" -> ${seq}`).join()}))`;
  }

  #say(...steps: readonly string[]): void {
    this.steps.push(...steps);
  }
}

function received(id: number): string {
  return `receive({ id: ${id}, user: ${id % 2}, kind: ${kindOf(id)} })`;
}

function set(numbers: readonly number[]): string {
  return `Set(${numbers.join(', ')})`;
}
