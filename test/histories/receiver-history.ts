import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { parseMasterKey } from '../../src/privacy/seal/master-key.ts';
import { OpensSealed } from '../privacy/seal/open-sealed.ts';
import { childEnvironment, MAIN, millrace, writeConfig } from '../support/millrace.ts';
import { ServeProcess } from '../support/serve-process.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { DAMAGES } from './damages.ts';

const MASTER = `mrk_${Buffer.alloc(32, 5).toString('base64')}`;
const ENV = { MILLRACE_MASTER_KEY: MASTER };
const TEAM = '00000000-0000-4000-8000-000000000001';

/** A sink of a user's own that notes the ids it takes, and takes none while it is shut. While it is held it does not answer. */
const HUB = `
import { appendFileSync, existsSync } from 'node:fs';
export const parseOptions = (options) => options;
export const createSink = ({ shut, held, taken }) => ({
  limits: { batchCount: 10, batchBytes: 1e6, eventBytes: 1e6, inFlight: 1, order: 'user', batchBy: 'mixed' },
  open: async () => {},
  send: async (batch, signal) => {
    if (existsSync(shut)) return batch.map(() => ({ status: 'retry', reason: 'it is shut', sink: true, delayMs: 20 }));
    appendFileSync(taken, batch.map(({ event }) => event.id + '\\n').join(''));
    while (existsSync(held) && !signal.aborted) await new Promise((resolve) => setTimeout(resolve, 10));
    if (signal.aborted) return batch.map(() => ({ status: 'retry', reason: 'its answer is lost' }));
    return batch.map(() => ({ status: 'delivered' }));
  },
  close: async () => {},
});`;

export interface Settings {
  readonly sealed: boolean;
  readonly retention: '1ms' | '7d';
  /** How old an archive file gets before it is closed. */
  readonly rotate: '1s' | '1h';
}

interface ArchiveFile {
  readonly path: string;
  readonly lines: readonly string[];
  /** Of each line; `erased` where its key is destroyed. */
  readonly ids: readonly string[];
}

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * A receiver in a process of its own, its archive, and plain lists of what was answered and whose erasure was asked for. The
 * lists are the oracle: nothing of the product keeps or reads them.
 */
export class ReceiverHistory {
  readonly folder: string;
  readonly settings: Settings;
  /** The program that runs. */
  readonly #main: string;
  /** Acknowledged ids, and their users. */
  readonly acknowledged = new Map<string, string>();
  /** Users whose erasure was asked for. */
  readonly erased = new Set<string>();
  /** What is not as it has to be, in words. */
  readonly faults: string[] = [];
  #users = ['u1', 'u2', 'u3', 'u4'].map(userId);
  #count = 0;
  #process: ServeProcess | null = null;
  #wasKilled = false;
  /** Whether reconcile may name what is lost: files of the journal were damaged. */
  #isDamaged = false;
  #reloads = 0;
  #journal = 'journal';
  #acknowledge: 'journaled' | 'delivered' = 'journaled';
  /** Whether no journal knows of all that came. */
  #isScattered = false;
  /** Restores the config of the last start, where it has changed. */
  #undo: (() => void) | null = null;
  /** Folders that were the archive's, the one of now last; and the names of its sink. */
  readonly #archives = ['archive'];
  readonly #names = ['archive'];
  #continues: string | null = null;
  /** Erasures without an answer that they are done. */
  readonly #unfinished = new Set<string>();

  constructor(folder: string, settings: Settings, main: string) {
    this.folder = folder;
    this.#main = main;
    this.settings = settings;
    writeFileSync(join(folder, 'hub.mjs'), HUB);
    writeFileSync(this.#taken, '');
  }

  get config(): string {
    return this.#write();
  }

  #write(): string {
    const { sealed, retention, rotate } = this.settings;
    const name = this.#names.at(-1) ?? '';
    const encrypt = { store: join(this.folder, 'keys'), masterKey: '${MILLRACE_MASTER_KEY}' };
    return writeConfig(this.folder, {
      acknowledge: this.#acknowledge as unknown as object,
      journal: { retention, path: join(this.folder, this.#journal) },
      sinks: {
        [name]: {
          type: 'files',
          path: join(this.folder, this.#archives.at(-1) ?? ''),
          ...(this.#continues === null ? {} : { continues: this.#continues }),
          rotate: { every: rotate },
          ...(sealed ? { encrypt } : {}),
        },
        hub: { type: './hub.mjs', shut: this.#shut, held: this.#held, taken: this.#taken, n: this.#reloads },
      },
      routes: [{ match: '*', to: [name, 'hub'] }],
      delivery: { retryInitial: '20ms', retryMax: '100ms' },
      shutdown: { deadline: '20s' },
    });
  }

  /** The hub takes nothing while this is there. */
  get #shut(): string {
    return join(this.folder, 'shut');
  }

  get #held(): string {
    return join(this.folder, 'held');
  }

  get #taken(): string {
    return join(this.folder, 'taken');
  }

  async running(): Promise<ServeProcess> {
    if (this.#process?.running === true) return this.#process;
    const process = new ServeProcess(this.config, { env: ENV, main: this.#main });
    this.#process = process;
    const undelivered = this.#undo === null ? 0 : this.#undelivered();
    try {
      await process.listening();
    } catch (error) {
      await this.#resolve(process.stderr, error);
      return this.running();
    }
    // What is damaged or gone is said by name.
    const isSaid = /an earlier journal was damaged|the journal of an earlier start is gone/.test(
      process.stderr,
    );
    if (undelivered > 0 && !isSaid)
      this.faults.push(`${undelivered} events wait in an earlier journal, and the start does not say so`);
    this.#undo = null;
    return process;
  }

  /** Does what a refused start says. @throws the refusal where it says nothing that helps */
  async #resolve(refusal: string, error: unknown): Promise<void> {
    if (/events wait in \S+ \(\d+ for /.test(refusal) && this.#undo !== null) {
      this.#undo();
      this.#undo = null;
      return;
    }
    if (refusal.includes('events wait for it') && this.#continues === null) {
      this.#continues = this.#names.at(-2) ?? null;
      return;
    }
    const named = /millrace journal recover --from-first ([\w-]+)/.exec(refusal)?.[1];
    if (named === undefined) throw error;
    const sinks = named === 'SINK' ? [this.#names.at(-1) ?? '', 'hub'] : [named];
    for (const sink of sinks) {
      const { code, stderr } = await this.run('journal', 'recover', '--from-first', sink);
      if (code !== 0) throw new Error(`journal recover ended with ${code}: ${stderr}`, { cause: error });
    }
  }

  /** Damages files of the journal between two starts. */
  async damage(what: keyof typeof DAMAGES): Promise<void> {
    await this.end('SIGKILL');
    const folder = join(this.folder, this.#journal);
    // One that was moved and not started yet has no files.
    if (!existsSync(folder)) return;
    this.#isDamaged = true;
    DAMAGES[what](folder, this.#count);
  }

  /** Several at once, of all users. */
  async accept(count: number): Promise<void> {
    // There would be no answer.
    if (this.#acknowledge === 'delivered') this.unblock();
    const { url } = await this.running();
    const posts = Array.from({ length: count }, async () => {
      this.#count += 1;
      const id = `made-up-${this.#count}`;
      const user = this.#users[this.#count % this.#users.length] as string;
      const whose = { team_id: TEAM, user_id: user, client_user_id: `of ${user}` };
      const event = { event_type: 'daily.data.steps.created', ...whose, data: { id } };
      const { json } = await postSigned(url, Buffer.from(JSON.stringify(event)), { id });
      if (json['status'] === 'accepted') this.acknowledged.set(id, user);
      else this.faults.push(`${id} was answered ${JSON.stringify(json)}`);
    });
    await Promise.all(posts);
  }

  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const process = this.#process;
    this.#process = null;
    if (process?.running !== true) return;
    if (signal === 'SIGKILL') this.#wasKilled = true;
    const { code } = await process.kill(signal);
    if (signal === 'SIGTERM' && code !== 0) this.faults.push(`it ended with ${code}: ${process.stderr}`);
  }

  /** A stop while a reload exchanges the hub, which has taken a batch and not answered yet. */
  async stopAmidReload(): Promise<void> {
    // Events that come in then would be answered with 503.
    if (this.#acknowledge === 'delivered') return;
    this.unblock();
    const process = await this.running();
    await this.drained();
    writeFileSync(this.#held, '');
    await this.accept(9);
    this.#reloads += 1;
    this.#write();
    process.signal('SIGHUP');
    const said = (what: string): boolean => process.logLines().some(({ msg }) => msg === what);
    await until('the hub to drain', () => said('sink draining'));
    const ended = this.end('SIGTERM');
    await until('the stop to begin', () => said('stopping'));
    rmSync(this.#held);
    await ended;
  }

  block(): void {
    writeFileSync(this.#shut, '');
  }

  unblock(): void {
    rmSync(this.#shut, { force: true });
  }

  /** Until nothing waits for a sink that takes something. */
  async drained(): Promise<void> {
    const process = await this.running();
    const isShut = existsSync(this.#shut);
    await until('nothing to wait', async () => {
      const { cursors } = (await process.status()).journal;
      return cursors.every(({ sink, backlog }) => backlog === 0 || (isShut && sink === 'hub'));
    });
  }

  /** Until retention has cleared away what it may. */
  async cleared(): Promise<void> {
    const process = await this.running();
    await this.drained();
    if (this.settings.retention === '1ms' && this.#acknowledge === 'journaled' && !existsSync(this.#shut))
      await until('the journal to be cleared', async () => (await process.status()).journal.events === 0);
  }

  /** With another path of the archive from the next start on, as after a kill that left files of the old one unfinished. */
  async moveArchive(): Promise<void> {
    await this.end('SIGKILL');
    this.#archives.push(`archive-${this.#archives.length + 1}`);
  }

  /** With another name of its sink; what waits for the old one is only named as its successor when a start asks for that. */
  async renameSink(): Promise<void> {
    // A name that never was in force has no successor.
    await this.running();
    await this.end('SIGKILL');
    this.#names.push(`archive-${this.#names.length + 1}`);
    this.#continues = null;
  }

  /** From the next start on, after a kill with which events may wait in the journal of now. */
  async moveJournal(): Promise<void> {
    await this.end('SIGKILL');
    const before = this.#journal;
    this.#undo ??= () => (this.#journal = before);
    this.#isScattered = true;
    this.#journal = before === 'journal' ? 'journal-2' : 'journal';
  }

  async turnAcknowledge(): Promise<void> {
    await this.end('SIGKILL');
    const before = this.#acknowledge;
    this.#undo ??= () => (this.#acknowledge = before);
    this.#isScattered = true;
    this.#acknowledge = before === 'journaled' ? 'delivered' : 'journaled';
  }

  /** Of one user, by the receiver if it runs. @param killed whether who erases is killed once the user is on the list */
  async erase(killed: boolean): Promise<void> {
    const [user = ''] = this.#users;
    this.#users = [...this.#users.slice(1), userId(`u${this.#count}-${this.erased.size}`)];
    this.erased.add(user);
    this.#unfinished.add(user);
    const before = this.#listed();
    const process = this.#process;
    const { child, ended } = this.#spawn('erase', '--now', user);
    if (killed) {
      const progress = { isOver: false };
      void ended.then(() => (progress.isOver = true));
      while (this.#listed() === before && !progress.isOver)
        await new Promise((resolve) => setImmediate(resolve));
      if (process === null) child.kill('SIGKILL');
      else await this.end('SIGKILL');
    }
    const { code, stderr } = await ended;
    if (this.#isErased(code, stderr)) this.#unfinished.delete(user);
    else if (!killed && !this.#isDamaged) this.faults.push(`erase ended with ${code}: ${stderr}`);
  }

  /** Whether an erasure has ended with a receipt, which may name a sealed archive whose sink is not in the config any more. */
  #isErased(code: number | null, stderr: string): boolean {
    return code === 0 || (code === 3 && this.#archives.length > 1 && stderr.includes('sealed records'));
  }

  /** While nothing was damaged nothing is lost, so it may say nothing but that. @returns its exit code */
  async reconcile(): Promise<number | null> {
    // What has moved is there from the next start on.
    if (
      (this.#isScattered && !this.#isDamaged) ||
      !existsSync(join(this.folder, this.#archives.at(-1) ?? ''))
    )
      return null;
    const { code, stdout, stderr } = await this.run('reconcile', '--json');
    if (code === 0 || this.#isDamaged) return code;
    const found = code === 4 ? (JSON.parse(stdout) as { differences: object[] }).differences : stderr;
    this.faults.push(`reconcile ended with ${code}: ${JSON.stringify(found)}`);
    return code;
  }

  run(...args: string[]): Promise<Ended> {
    // Inside the test where it is the program itself: that is quicker.
    if (this.#main !== MAIN) return this.#spawn(...args).ended;
    return millrace([...args, '--config', this.config], { env: ENV });
  }

  /** Ends it in order, and compares everything with the lists. */
  async judge(): Promise<void> {
    this.unblock();
    await this.drained();
    for (const user of this.#unfinished) {
      const { code, stderr } = await this.run('erase', '--now', user);
      if (!this.#isErased(code, stderr)) this.faults.push(`erase ended with ${code}: ${stderr}`);
    }
    await this.cleared();
    const codes = [await this.reconcile()];
    await this.end('SIGTERM');
    // Whatever waits in any of the journals goes where it is due.
    this.#acknowledge = 'journaled';
    this.#undo = null;
    for (const journal of this.#isScattered ? ['journal', 'journal-2'] : []) {
      this.#journal = journal;
      await this.cleared();
      if (this.#isDamaged) codes.push(await this.reconcile());
      await this.end('SIGTERM');
    }
    codes.push(await this.reconcile());
    const files = this.#files();
    const archived = new Set(files.flatMap(({ ids }) => ids));
    const all = readFileSync(this.#taken, 'utf8').trim().split('\n');
    const taken = new Set(all);
    // Only what a kill has interrupted may come again.
    if (!this.#wasKilled && all.length > taken.size) this.faults.push('events came to the hub twice');
    for (const [id, user] of this.acknowledged) {
      const isErased = this.erased.has(user);
      if (isErased && archived.has(id)) this.faults.push(`${id} is of an erased user, and in the archive`);
      // What a damage has taken is to be named.
      if (isErased || (this.#isScattered ? codes.includes(4) : codes.every((code) => code === 4))) continue;
      const said = codes.join(' and ');
      if (!archived.has(id))
        this.faults.push(`${id} is not in the archive, and reconcile ended with ${said}`);
      if (!taken.has(id)) this.faults.push(`${id} did not come to the hub, and reconcile ended with ${said}`);
    }
    // What was in a file before a kill and is erased after it may be counted there and in the journal: one loss could hide behind it.
    if (this.faults.length === 0 && !this.#wasKilled && !this.#isScattered && !this.#isDamaged)
      await this.#loseOne(files);
  }

  /** Takes the last event out of the archive, which has to be noticed whatever else is gone. */
  async #loseOne(files: readonly ArchiveFile[]): Promise<void> {
    const id = [...this.acknowledged.keys()].findLast((each) => files.some(({ ids }) => ids.includes(each)));
    for (const { path, lines, ids } of files)
      writeFileSync(path, gzipSync(lines.filter((_, at) => ids[at] !== id).join('')));
    const { code } = await this.run('reconcile', '--json');
    if (id !== undefined && code !== 4) this.faults.push(`${id} was lost, and reconcile ended with ${code}`);
  }

  /** Events of which a sink has nothing on disk. */
  #undelivered(): number {
    const archived = new Set(this.#files(true).flatMap(({ ids }) => ids));
    const taken = new Set(readFileSync(this.#taken, 'utf8').split('\n'));
    const waits = ([id, user]: [string, string]): boolean =>
      !this.erased.has(user) && !(archived.has(id) && taken.has(id));
    return [...this.acknowledged].filter(waits).length;
  }

  #spawn(...args: string[]): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
    const child = spawn(process.execPath, [this.#main, ...args, '--config', this.config], {
      env: childEnvironment(ENV),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'] as const)
      child[name].setEncoding('utf8').on('data', (text: string) => (said[name] += text));
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, ...said }));
    return { child, ended };
  }

  /** Bytes of the list of erased users. */
  #listed(): number {
    return statSync(join(this.folder, 'erasure/erased.jsonl'), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** @param unfinished whether the records of files that are being written count, too */
  #files(unfinished = false): readonly ArchiveFile[] {
    const { sealed } = this.settings;
    const keys = sealed ? new OpensSealed(join(this.folder, 'keys'), parseMasterKey(MASTER)) : null;
    const archives = this.#archives.map((name) => join(this.folder, name)).filter((path) => existsSync(path));
    const paths = archives.flatMap((archive) =>
      readdirSync(archive, { recursive: true, encoding: 'utf8' }).map((name) => join(archive, name)),
    );
    return paths.flatMap((path) => {
      const isPart = path.endsWith('.part');
      if (isPart && !unfinished) this.faults.push(`${path} is left unfinished`);
      if (!path.endsWith('.ndjson.gz') && !(isPart && unfinished)) return [];
      const bytes = readFileSync(path);
      const text = (isPart ? bytes : gunzipSync(bytes)).toString();
      const lines = text.split(/(?<=\n)/).filter((line) => line.endsWith('\n'));
      const ids = lines.map((line) => {
        const record = keys === null ? (JSON.parse(line) as unknown) : keys.open(line);
        return record === 'erased' ? record : (record as { id: string }).id;
      });
      return [{ path, lines, ids }];
    });
  }
}

function userId(name: string): string {
  return `00000000-0000-4000-8000-${Buffer.from(name).toString('hex').padStart(12, '0').slice(-12)}`;
}

/** What may happen, by what a failure prints. */
export const STEPS = {
  'accept 1': (history) => history.accept(1),
  'accept 9': (history) => history.accept(9),
  kill: (history) => history.end('SIGKILL'),
  stop: (history) => history.end('SIGTERM'),
  start: async (history) => void (await history.running()),
  drain: (history) => history.drained(),
  block: (history) => Promise.resolve(history.block()),
  unblock: (history) => Promise.resolve(history.unblock()),
  clear: (history) => history.cleared(),
  erase: (history) => history.erase(false),
  'erase, killed': (history) => history.erase(true),
  reconcile: (history) => history.reconcile(),
  'kill, move the journal': (history) => history.moveJournal(),
  'kill, acknowledge otherwise': (history) => history.turnAcknowledge(),
  'stop amid a reload': (history) => history.stopAmidReload(),
  'kill, move the archive': (history) => history.moveArchive(),
  'kill, rename its sink': (history) => history.renameSink(),
  'damage: a bit of the database': (history) => history.damage('a bit of the database'),
  'damage: the database is emptied': (history) => history.damage('the database is emptied'),
  'damage: the database is removed': (history) => history.damage('the database is removed'),
  'damage: a bit of a segment': (history) => history.damage('a bit of a segment'),
  'damage: the first segment is removed': (history) => history.damage('the first segment is removed'),
  'damage: all segments are removed': (history) => history.damage('all segments are removed'),
} as const satisfies Record<string, (history: ReceiverHistory) => Promise<unknown>>;

export type Step = keyof typeof STEPS;

/** @returns what was not as it has to be */
export async function faultsOf(
  folder: string,
  settings: Settings,
  steps: readonly Step[],
  main = MAIN,
): Promise<readonly string[]> {
  const history = new ReceiverHistory(folder, settings, main);
  try {
    // Commands do not start where a receiver has never been.
    await history.accept(1);
    await history.drained();
    for (const step of steps) await STEPS[step](history);
    await history.judge();
  } finally {
    await history.end('SIGKILL');
  }
  return history.faults;
}
