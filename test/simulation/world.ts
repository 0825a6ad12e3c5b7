import { Disk, DiskError } from './disk.ts';
import { Scheduler } from './scheduler.ts';

/** What the process under test runs in. One at a time: the modules that stand in for Node's own find it here. */
export class World {
  readonly disk = new Disk();
  readonly scheduler: Scheduler;
  /** Open servers, by the port they wished for. */
  readonly servers = new Map<number, { emit(event: 'connection', socket: unknown): boolean }>();
  /** Paths of locks, and who holds them. */
  readonly locks = new Map<string, object>();
  /** Chance that a write, a sync or a new name fails, while the disk is in trouble. */
  trouble = 0;
  faults = 0;

  constructor(seed: number) {
    this.scheduler = new Scheduler(seed);
  }

  /** A change to the disk that may fail. */
  risk(call: string, path: string): void {
    this.disk.now = this.scheduler.now;
    if (this.trouble === 0 || !this.scheduler.random.chance(this.trouble)) return;
    this.faults += 1;
    throw new DiskError(this.scheduler.random.pick(['EIO', 'ENOSPC', 'EDQUOT']), call, path);
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
