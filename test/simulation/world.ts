import { Disk, DiskError } from './disk.ts';
import { Scheduler } from './scheduler.ts';

/** What the process under test runs in. One at a time: the modules that stand in for Node's own find it here. */
export class World {
  readonly disk = new Disk();
  readonly scheduler: Scheduler;
  /** Open servers, by the port they wished for. */
  readonly servers = new Map<number, { emit(event: 'connection', socket: unknown): boolean }>();
  /** Paths of locks, and who holds them. */
  readonly locks = new Map<string, { readonly name: string }>();
  /** What is far away: what it has, in its order, what it once refused, and the chance that it does not answer well. */
  readonly broker = {
    taken: [] as { readonly id: string; readonly body: string }[],
    refused: new Set<string>(),
    trouble: 0,
  };
  /** A sink that holds events and confirms them later: what is in its place. */
  readonly lake = { taken: [] as { readonly id: string; readonly body: string }[] };
  /** Chance that a write, a sync or a new name fails, while the disk is in trouble. */
  trouble = 0;
  /** Where it is: each folder may be on a disk of its own. */
  troubled: (path: string) => boolean = () => true;
  /** What was done to the program, and how often. */
  readonly tried: Record<string, number> = {};

  constructor(seed: number) {
    this.scheduler = new Scheduler(seed);
  }

  note(what: string): void {
    this.tried[what] = (this.tried[what] ?? 0) + 1;
  }

  isTroubled(path: string): boolean {
    return this.trouble > 0 && this.troubled(path);
  }

  /** A change to the disk that may fail. */
  risk(call: string, path: string): void {
    this.disk.now = this.scheduler.now;
    if (!this.isTroubled(path) || !this.scheduler.random.chance(this.trouble)) return;
    const code = this.scheduler.random.pick(['EIO', 'ENOSPC', 'EDQUOT']);
    this.note(code);
    throw new DiskError(code, call, path);
  }
}

let world: World | null = null;

export function enter(next: World | null): void {
  world = next;
}

export function here(): World {
  if (world === null) throw new Error('no world is simulated');
  return world;
}
