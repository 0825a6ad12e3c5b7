import Database from 'better-sqlite3';

/** What the journal says became of one event at one sink. */
export type State = 'settled' | 'perhaps' | 'waiting';

/** Why an event is not with a sink, and is not lost. */
export type Mark = 'dead' | 'dropped' | 'quarantined';

/** Events of one sink by what became of them; each is counted once. */
export interface SinkIds {
  /** In the files, and in the journal. */
  readonly found: number;
  /** In the files, and in the journal no longer. */
  readonly onlyFound: number;
  /** More than one record of the same id. */
  readonly copies: number;
  readonly dead: number;
  readonly dropped: number;
  readonly quarantined: number;
  readonly waiting: number;
  /** Settled, as the journal has it, and not among the above. */
  readonly settled: number;
  /** Not for this sink, by the routes they were accepted under. */
  readonly elsewhere: number;
}

/**
 * Ids of millions of events, held against each other on disk: a database without a name, which SQLite keeps in a
 * temporary file and removes when it is closed.
 */
export class IdTables {
  readonly #db: Database.Database;
  readonly #addEvent;
  readonly #addDue;
  readonly #addFound;
  readonly #addMark;

  constructor() {
    this.#db = new Database('');
    this.#db.exec(`
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA cache_size = -65536;
      CREATE TABLE events (id TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
      CREATE TABLE due (sink TEXT, id TEXT, state TEXT, PRIMARY KEY (sink, id)) WITHOUT ROWID;
      CREATE TABLE found (sink TEXT, id TEXT, n INTEGER, PRIMARY KEY (sink, id)) WITHOUT ROWID;
      CREATE TABLE marks (sink TEXT, id TEXT, mark TEXT, PRIMARY KEY (sink, id)) WITHOUT ROWID;
      CREATE TABLE late (id TEXT PRIMARY KEY) WITHOUT ROWID;
      BEGIN`);
    this.#addEvent = this.#db.prepare(
      'INSERT INTO events VALUES ($id, 1) ON CONFLICT (id) DO UPDATE SET n = n + $again',
    );
    // An event that was retried for one sink stands in the journal twice; while one of the two waits, it waits.
    this.#addDue = this.#db.prepare(
      `INSERT INTO due VALUES (?, ?, ?) ON CONFLICT (sink, id) DO UPDATE SET state = excluded.state
       WHERE excluded.state = 'waiting' OR state = 'perhaps'`,
    );
    this.#addFound = this.#db.prepare(
      'INSERT INTO found VALUES (?, ?, 1) ON CONFLICT (sink, id) DO UPDATE SET n = n + 1',
    );
    this.#addMark = this.#db.prepare('INSERT OR IGNORE INTO marks VALUES (?, ?, ?)');
  }

  /**
   * An event the journal holds. One retried for a sink stands there twice; but two that came with one id are two.
   * @param isPutBack whether it may be one that is known
   */
  event(id: string, isPutBack: boolean): void {
    this.#addEvent.run({ id, again: isPutBack ? 0 : 1 });
  }

  /** Whether the journal holds an event of this id. */
  holds(id: string): boolean {
    return this.#db.prepare('SELECT 1 FROM events WHERE id = ?').get(id) !== undefined;
  }

  due(sink: string, id: string, state: State): void {
    this.#addDue.run(sink, id, state);
  }

  /** @param sink empty for every sink */
  mark(sink: string, id: string, mark: Mark): void {
    this.#addMark.run(sink, id, mark);
  }

  /** A record in a sink's files. */
  found(sink: string, id: string): void {
    this.#addFound.run(sink, id);
  }

  /** An event that came in after the journal was read. */
  late(id: string): void {
    this.#db.prepare('INSERT OR IGNORE INTO late VALUES (?)').run(id);
  }

  count(sink: string): SinkIds {
    const one = (sql: string): number =>
      Number(this.#db.prepare(`${WITH} ${sql}`).pluck().get({ sink }) ?? 0);
    const state = (name: string): number => one(`SELECT sum(n) FROM absent WHERE what = '${name}'`);
    return {
      found: one('SELECT sum(min(found.n, events.n)) FROM found JOIN events USING (id) WHERE sink = $sink'),
      onlyFound: one(`SELECT count(*) FROM alone`),
      copies: one(
        'SELECT sum(max(0, found.n - coalesce(events.n, 1))) FROM found LEFT JOIN events USING (id) WHERE sink = $sink',
      ),
      dead: state('dead'),
      dropped: state('dropped'),
      quarantined: state('quarantined'),
      waiting: state('waiting'),
      settled: state('settled'),
      elsewhere: one(`SELECT sum(n) FROM events WHERE NOT EXISTS
        (SELECT 1 FROM due WHERE sink = $sink AND due.id = events.id AND state <> 'perhaps')
        AND NOT EXISTS (SELECT 1 FROM absent WHERE absent.id = events.id AND what <> 'perhaps')
        AND NOT EXISTS (SELECT 1 FROM found WHERE sink = $sink AND found.id = events.id)`),
    };
  }

  /** Letters of a sink whose events the journal holds no longer, and which are not in its files. */
  marksAlone(sink: string, mark: Mark): number {
    const sql = `SELECT count(*) FROM marks WHERE sink = ? AND mark = ? AND id NOT IN (SELECT id FROM events)
      AND id NOT IN (SELECT id FROM found WHERE found.sink = marks.sink)`;
    return Number(this.#db.prepare(sql).pluck().get(sink, mark));
  }

  get events(): number {
    return Number(this.#db.prepare('SELECT sum(n) FROM events').pluck().get() ?? 0);
  }

  /** Ids that the journal has as settled for a sink, and its files have not. */
  missing(sink: string, limit: number): string[] {
    return this.#ids(`SELECT id FROM absent WHERE what = 'settled' ORDER BY id LIMIT ${limit}`, sink);
  }

  /** Ids that a sink's files have, and the journal has not. */
  alone(sink: string, limit: number): string[] {
    return this.#ids(`SELECT id FROM alone ORDER BY id LIMIT ${limit}`, sink);
  }

  close(): void {
    this.#db.close();
  }

  #ids(sql: string, sink: string): string[] {
    return this.#db.prepare(`${WITH} ${sql}`).pluck().all({ sink }) as string[];
  }
}

const WITH = `
WITH absent AS (
  SELECT due.id, coalesce(own.mark, every.mark, due.state) AS what,
    coalesce(events.n, 1) - coalesce(found.n, 0) AS n FROM due
  LEFT JOIN events ON events.id = due.id
  LEFT JOIN found ON found.sink = due.sink AND found.id = due.id
  LEFT JOIN marks own ON own.sink = due.sink AND own.id = due.id
  LEFT JOIN marks every ON every.sink = '' AND every.id = due.id
  WHERE due.sink = $sink AND coalesce(found.n, 0) < coalesce(events.n, 1)),
alone AS (
  SELECT id FROM found WHERE sink = $sink AND id NOT IN (SELECT id FROM events) AND id NOT IN (SELECT id FROM late))`;
