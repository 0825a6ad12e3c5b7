import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { ReadOptions } from '../../src/archive/read.ts';
import { temporaryFolder } from './folders.ts';
import { type Ended, millrace, type RunOptions, writeConfig } from './millrace.ts';
import { type ReadBack, readBack } from './read-back.ts';
import { ReceiverProcess } from './receiver-process.ts';
import { Receiver } from './receiver.ts';

/** Whatever a document holds: the test says what it expects. */
type Json = ReturnType<typeof JSON.parse>;

/** A folder of the running test's own with a config in it; receivers and commands that go by it. */
export class Place {
  readonly folder: string;
  readonly config: string;
  readonly #env: Readonly<Record<string, string>>;

  private constructor(folder: string, config: string, env: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.config = config;
    this.#env = env;
  }

  /** @param changes of `writeConfig`, or what makes them of the folder */
  static async make(
    changes: object | ((folder: string) => object) = {},
    env: Readonly<Record<string, string>> = {},
  ): Promise<Place> {
    const folder = await temporaryFolder();
    const made: object = typeof changes === 'function' ? changes(folder) : changes;
    return new Place(folder, writeConfig(folder, { ...made }), env);
  }

  at(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** Writes the config again. */
  write(changes: object): void {
    writeConfig(this.folder, { ...changes });
  }

  /** Changes the config as it is written. */
  edit(change: (config: Json) => void): void {
    const config: unknown = JSON.parse(readFileSync(this.config, 'utf8'));
    change(config);
    writeFileSync(this.config, JSON.stringify(config, null, 2));
  }

  start(options: Pick<RunOptions, 'env'> = {}): Promise<Receiver> {
    return Receiver.start(this.config, { ...options, env: { ...this.#env, ...options.env } });
  }

  startProcess(options: RunOptions = {}): Promise<ReceiverProcess> {
    return ReceiverProcess.start(this.config, { ...options, env: { ...this.#env, ...options.env } });
  }

  /** Runs a command to its end. */
  run(...args: string[]): Promise<Ended> {
    return millrace([...args, '--config', this.config], { env: this.#env });
  }

  /** Runs a command that has to end with 0. @returns what it prints */
  async ok(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }

  /** The documents that a command prints with `--json`, one a line. */
  async documents(...args: string[]): Promise<Json[]> {
    const { stdout, stderr } = await this.run(...args, '--json');
    const lines = stdout.split('\n').filter((line) => line !== '');
    if (lines.length === 0 && stderr !== '') throw new Error(stderr);
    return lines.map((line) => JSON.parse(line) as unknown);
  }

  /** The last, or only, document that a command prints, with its exit code. */
  async json(...args: string[]): Promise<Json> {
    const { code, stdout, stderr } = await this.run(...args, '--json');
    const document = stdout.slice(stdout.lastIndexOf('\n{') + 1);
    if (document === '') throw new Error(stderr);
    return { code, ...(JSON.parse(document) as object) };
  }

  /** Everything that the files of an archive hold, by id. */
  archived(name = 'archive', options: ReadOptions = {}): Promise<Map<string, ReadBack[]>> {
    return readBack(this.at(name), options);
  }
}

const matching = (text: string | RegExp): unknown =>
  typeof text === 'string' ? expect.stringContaining(text) : expect.stringMatching(text);

/** How a command ended that said this on stderr. */
export const saying = (code: number, text: string | RegExp) => ({ code, stderr: matching(text) });

/** How a command ended that printed this. */
export const printing = (code: number, text: string | RegExp) => ({ code, stdout: matching(text) });
