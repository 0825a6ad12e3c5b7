import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { OpensSealed } from '../privacy/seal/open-sealed.ts';
import { millrace, ROOT, type RunOptions, writeConfig } from '../support/millrace.ts';
import { ServeProcess } from '../support/serve-process.ts';
import type { Exit } from '../support/serving.ts';
import { until, within } from '../support/until.ts';
import type { Load } from './load.ts';
import {
  type FinishedFiles,
  finishedNames,
  judge,
  readFinished,
  type SentEvent,
  unfinishedNames,
  type Verdict,
} from './oracle.ts';
import { randomTable, type Table } from './tables.ts';

/** Receivers keep their compiled code here: they are started hundreds of times. */
const CACHE = join(ROOT, 'node_modules/.cache/millrace-campaign');
const MASTER_KEY = Buffer.alloc(32, 11);
const SINKS = ['archive', 'labs', 'other'];
/** Events that have to be accepted after a fault. */
const LIVELY = 20;

export interface SceneOptions {
  readonly folder: string;
  readonly random: () => number;
  readonly load: Load;
  readonly broken: boolean;
}

/** One history: a journal, archives and a config that outlive its receivers, the load, and what is held of them. */
export class Scene {
  readonly folder: string;
  readonly random: () => number;
  readonly load: Load;
  readonly broken: boolean;
  /** Below these lie the journal and the archives. */
  journalRoot: string;
  archiveRoot: string;
  faults = 0;
  readonly findings: string[] = [];
  verdict: Verdict = { lost: [], wrong: [], repeated: 0 };
  events: readonly SentEvent[] = [];
  #receiver: ServeProcess | null = null;
  readonly #receivers: ServeProcess[] = [];
  readonly #undo: (() => void)[] = [];
  #config = '';
  #sinks: readonly string[] = [];
  #options: Readonly<Record<string, object>> = {};
  #table: Table = { routes: [] };
  #plain = false;
  readonly #sealed = new Set<string>();
  readonly #stretches: (readonly Table[])[] = [];
  readonly #seen = new Set<string>();

  constructor({ folder, random, load, broken }: SceneOptions) {
    this.folder = folder;
    this.journalRoot = folder;
    this.archiveRoot = folder;
    this.random = random;
    this.load = load;
    this.broken = broken;
  }

  /** What has to be undone when the history is over, last first. */
  onClose(undo: () => void): void {
    this.#undo.push(undo);
  }

  /** A whole number from 1 to `most`. */
  upTo(most: number): number {
    return Math.ceil(this.random() * most) || 1;
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  /** Some of its archives are sealed, from the first record on. Their keys lie beside them. */
  sealSome(): void {
    for (const sink of SINKS) if (this.chance(0.4)) this.#sealed.add(sink);
  }

  /**
   * Writes a config with other routes, and perhaps one sink more and files of another size. Sinks are never taken away:
   * that is refused while events wait for them.
   */
  change(): void {
    if (this.#plain) return;
    const more = SINKS.slice(0, Math.max(this.#sinks.length, this.upTo(SINKS.length)));
    const options = this.chance(0.5) ? this.#options : {};
    this.#sinks = more;
    this.#options = Object.fromEntries(more.map((name) => [name, options[name] ?? this.#filesOptions(name)]));
    this.#table = randomTable(more, this.random);
    this.#config = this.configBelow(this.folder, this.journalRoot);
  }

  /**
   * Writes the config of a history that never changes: one sink, whose file is never finished under load. Such a file tells
   * the next start what it holds, so that nothing comes twice.
   */
  plain(): void {
    this.#sinks = SINKS.slice(0, 1);
    this.#options = {
      archive: { type: 'files', path: this.#pathOf('archive'), ...this.#encryption('archive') },
    };
    this.#table = { routes: [{ match: '*', to: ['archive'] }] };
    this.#config = this.configBelow(this.folder, this.journalRoot);
    this.#plain = true;
  }

  /** The config of now in another folder, with its journal below another root. */
  configBelow(folder: string, journalRoot: string): string {
    mkdirSync(folder, { recursive: true });
    return writeConfig(folder, {
      journal: { path: join(journalRoot, 'journal') },
      sinks: this.#options,
      routes: [...this.#table.routes] as unknown as object,
    });
  }

  /** At 4 KiB a file is finished, and its line added to the manifest, with almost every batch. */
  #filesOptions(name: string): object {
    const bytes = ['4KiB', '64KiB', '128MiB'][Math.floor(this.random() * 3)];
    const compress = this.chance(0.5) ? 'gzip' : 'none';
    return {
      type: 'files',
      path: this.#pathOf(name),
      compress,
      rotate: { bytes },
      ...this.#encryption(name),
    };
  }

  #pathOf(sink: string): string {
    return join(this.archiveRoot, sink);
  }

  #keysOf(sink: string): string {
    return join(this.archiveRoot, 'keys', sink);
  }

  #encryption(sink: string): object {
    if (!this.#sealed.has(sink)) return {};
    return { encrypt: { store: this.#keysOf(sink), masterKey: MASTER_KEY.toString('base64') } };
  }

  /** What is in a sink's finished files, opened where they are sealed. */
  #read(sink: string, names = finishedNames(this.#pathOf(sink))): FinishedFiles {
    const opens =
      this.#sealed.has(sink) && names.length > 0 ? new OpensSealed(this.#keysOf(sink), MASTER_KEY) : null;
    return readFinished(this.#pathOf(sink), names, opens);
  }

  get config(): string {
    return this.#config;
  }

  /** Starts a receiver and returns at once: it may be killed amid its start. */
  launch(options: RunOptions = {}): ServeProcess {
    this.#enter([this.#table]);
    return this.follow(new ServeProcess(this.#config, this.withEnvironment(options)));
  }

  withEnvironment(options: RunOptions = {}): RunOptions {
    return { ...options, env: { NODE_COMPILE_CACHE: CACHE, ...options.env } };
  }

  /** Has a process ended with the history; the last one is the receiver. */
  follow(receiver: ServeProcess): ServeProcess {
    this.#receivers.push(receiver);
    this.#receiver = receiver;
    return receiver;
  }

  /** The receiver, unless it has ended. */
  get running(): ServeProcess | null {
    return this.#receiver?.running === true ? this.#receiver : null;
  }

  /** Starts a receiver and returns once it listens. */
  async start(options: RunOptions = {}): Promise<ServeProcess> {
    const receiver = this.launch(options);
    await receiver.listening();
    return receiver;
  }

  /** Has the config changed and read again, and does not wait for what comes of it. */
  hangUp(receiver: ServeProcess): void {
    const before = this.#table;
    this.change();
    this.#enter([before, this.#table]);
    receiver.signal('SIGHUP');
  }

  async reload(receiver: ServeProcess): Promise<void> {
    const said = (text: string): number =>
      receiver.logLines().filter(({ msg }) => String(msg).startsWith(text)).length;
    const [done, failed] = [said('reloaded'), said('reload failed')];
    this.hangUp(receiver);
    await until('the line "reloaded"', () => said('reloaded') > done || said('reload failed') > failed);
    if (said('reload failed') > failed) throw new Error('the reload failed');
    this.#enter([this.#table]);
  }

  #enter(tables: readonly Table[]): void {
    this.#stretches.push(tables);
    this.load.stretch(this.#stretches.length - 1);
  }

  /** Keeps the load up until so many events have been answered and `then` is over. */
  async underLoad(receiver: ServeProcess, answers: number, then: () => Promise<void>): Promise<void> {
    this.load.begin(receiver.url);
    try {
      await this.load.answers(answers);
      await then();
    } finally {
      await this.load.end();
    }
  }

  /** Holds of what lies on the disk right after a fault that no file under a final name is torn. */
  inspect(): void {
    for (const sink of SINKS) {
      const names = finishedNames(this.#pathOf(sink)).filter((name) => !this.#seen.has(join(sink, name)));
      const { torn } = this.#read(sink, names);
      for (const name of names) this.#seen.add(join(sink, name));
      this.findings.push(...torn.map((text) => `${sink}: torn after the fault: ${text}`));
    }
  }

  /** Liveness, then conservation, once the faults are over. */
  async audit(): Promise<void> {
    const receiver = this.running ?? (await this.start());
    await this.underLoad(receiver, LIVELY, () => Promise.resolve());
    const { journal } = await receiver.drained();
    if (journal.quarantined !== 0 || journal.deadLetters !== 0)
      this.findings.push(`${journal.quarantined} quarantined, ${journal.deadLetters} dead letters`);
    const exit = await receiver.kill('SIGTERM');
    if (exit.code !== 0) this.findings.push(`SIGTERM: ended with ${JSON.stringify(exit)}`);
    this.events = this.load.report();
    const found = new Map(this.#sinks.map((sink) => [sink, this.#read(sink)]));
    this.verdict = judge(this.events, found, this.#stretches);
    this.findings.push(...this.verdict.lost, ...this.verdict.wrong);
    if (this.#plain && this.verdict.repeated > 0)
      this.findings.push(`${this.verdict.repeated} repeated, with one file that was open all the time`);
    for (const sink of this.#sinks)
      this.findings.push(...unfinishedNames(this.#pathOf(sink)).map((name) => `${sink}: left over: ${name}`));
    // Its own word for it comes last: it is not what a loss is known by.
    if (this.findings.length === 0) await this.#ask();
  }

  /** What the product says of the same: both commands have to agree that all is there. */
  async #ask(): Promise<void> {
    const used = this.#sinks.filter((sink) => finishedNames(this.#pathOf(sink)).length > 0);
    const asked = [
      ...used.map((sink) => ['archive', 'verify', this.#pathOf(sink)]),
      ['reconcile', '--config', this.#config],
    ];
    await Promise.all(
      asked.map(async (args) => {
        const { code, stdout, stderr } = await millrace(args, this.withEnvironment());
        if (code !== 0) this.findings.push(`millrace ${args.join(' ')}: exit ${code}\n${stdout}${stderr}`);
      }),
    );
  }

  /** What the last receiver logged, for a history that failed. */
  lastLines(): string[] {
    return (this.#receiver?.stderr ?? '').trim().split('\n').slice(-8);
  }

  async close(): Promise<void> {
    await Promise.all(this.#receivers.map((receiver) => receiver.kill('SIGKILL')));
    for (const undo of this.#undo.toReversed()) undo();
  }
}

/** The end of a receiver that a fault has to end. */
export async function endOf(receiver: ServeProcess): Promise<Exit> {
  return within('the end of the receiver', receiver.exited);
}
