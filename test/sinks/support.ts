import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { JournalEvent } from '../../src/core/event.ts';
import type { Delivery, SinkContext } from '../../src/core/sink.ts';
import { contractEvent } from '../../src/sinks/contract-events.ts';
import { parseOptions } from '../../src/sinks/files/config.ts';
import { toMessages, type Compression } from '../../src/vendors/message.ts';
import { FilesSink, type FilesHooks } from '../../src/sinks/files/sink.ts';
import { readArchive } from '../../src/archive/read.ts';
import type { ArchiveItem } from '../../src/archive/read-line.ts';
import { ManualClock } from '../support/manual-clock.ts';

export const signal = new AbortController().signal;

export interface LogLine {
  readonly level: 'info' | 'warn' | 'error';
  readonly fields: Record<string, unknown>;
  readonly message: string;
}

export interface TestContext extends SinkContext {
  readonly clock: ManualClock;
  readonly lines: LogLine[];
}

/** When the clock of a context begins. */
export const NOW = 1_795_230_902_123;

export function makeContext(): TestContext {
  const lines: LogLine[] = [];
  const at =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields: { ...fields }, message });
    };
  return {
    name: 'archive',
    clock: new ManualClock(NOW),
    lines,
    log: { info: at('info'), warn: at('warn'), error: at('error') },
  };
}

/** A folder that stays until it is removed. */
export function keptFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'millrace-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** A folder of the running test, removed after it. */
export function tempFolder(): string {
  const { path, remove } = keptFolder();
  onTestFinished(remove);
  return path;
}

export function filesSink(
  path: string,
  options: object = {},
  hooks: FilesHooks = {},
): { sink: FilesSink; context: TestContext } {
  const context = makeContext();
  return { sink: new FilesSink(parseOptions({ path, ...options }), context, hooks), context };
}

export function deliver(
  from: number,
  count: number,
  changes: Partial<JournalEvent> = {},
  destination: string | null = null,
): Delivery[] {
  return Array.from({ length: count }, (_, i) => ({ event: contractEvent(from + i, changes), destination }));
}

/** The message of one event, as a sink makes it. */
export async function messageOf<T>(
  event: JournalEvent,
  compression: Compression,
  toMessage: (event: JournalEvent, body: Buffer, isZipped: boolean) => T,
): Promise<T> {
  const [message] = await toMessages([{ event, destination: null }], compression, toMessage);
  return message as T;
}

/** Ids of as many events as `deliver` makes, in order of their numbers. */
export function idsFrom(from: number, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `msg_${from + i}`);
}

export async function items(path: string, parts = false): Promise<ArchiveItem[]> {
  return Array.fromAsync(readArchive(path, { parts }));
}

export async function records(path: string, parts = false): Promise<(ArchiveItem & { kind: 'record' })[]> {
  return (await items(path, parts)).map((item) => {
    if (item.kind === 'problem') throw new Error(`${item.file}:${item.line ?? ''} ${item.reason}`);
    return item;
  });
}

export async function ids(path: string, parts = false): Promise<string[]> {
  return (await records(path, parts)).map(({ record }) => record.id);
}
