import { readlinkSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { onTestFinished, vi } from 'vitest';
import { ROOT } from './millrace.ts';
import type { Lack } from './requirements.ts';

export const lacksSyncs: Lack = process.platform === 'linux' ? null : 'needs /proc';

/** Calls `onSync` with the path of each file or folder at the moment it is synced by a handle, until the test is over. */
export async function watchSyncs(onSync: (path: string) => void): Promise<void> {
  const handle = await open(ROOT);
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  const { sync } = prototype;
  const spy = vi.spyOn(prototype, 'sync').mockImplementation(async function (this: FileHandle) {
    onSync(readlinkSync(`/proc/self/fd/${this.fd}`));
    await sync.call(this);
  });
  onTestFinished(() => spy.mockRestore());
}
