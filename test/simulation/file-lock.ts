import { here } from './world.ts';

export interface FileLock {
  release(file?: 'keep' | 'remove'): void;
}

/** Locks as the system has them: they end with the process. */
export function tryLock(path: string, name = 'another process'): FileLock | null {
  const { locks, scheduler } = here();
  if (locks.has(path)) return null;
  const holder = { name };
  const drop = (): void => {
    if (locks.get(path) === holder) locks.delete(path);
  };
  locks.set(path, holder);
  scheduler.asker()?.atEnd(drop);
  return { release: drop };
}

export function tryOwn(path: string, name?: string): FileLock | null {
  return tryLock(path, name);
}

export function ownerOf(path: string): string | null {
  return here().locks.get(path)?.name ?? null;
}

export async function own(path: string, refusal: (owner: string) => Error): Promise<FileLock> {
  const lock = tryLock(path);
  if (lock === null) throw refusal('another process');
  return Promise.resolve(lock);
}

export async function lockInTurn(path: string): Promise<FileLock> {
  for (;;) {
    const lock = tryLock(path);
    if (lock !== null) return lock;
    await here().scheduler.ask(() => undefined);
  }
}
