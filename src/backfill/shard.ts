import { hash } from 'node:crypto';

/** A part of the users of a backfill that is split over several runs. */
export interface Shard {
  /** From 1. */
  readonly number: number;
  readonly of: number;
}

const MOST = 1000;
const FOLDER = /^shard-(\d+)-of-(\d+)$/;

/**
 * Reads `3/16`; `job/16` takes the number from JOB_COMPLETION_INDEX, which Kubernetes gives the pods of an indexed Job,
 * counted from 0.
 * @throws RangeError when it is neither
 */
export function parseShard(text: string, env: NodeJS.ProcessEnv): Shard {
  const [, which = '', of = ''] = /^(\d+|job)\/(\d+)$/.exec(text) ?? [];
  if (which === '') throw new RangeError('must be like 3/16, or job/16 in an indexed Job');
  const index = env['JOB_COMPLETION_INDEX'] ?? '';
  if (which === 'job' && !/^\d+$/.test(index))
    throw new RangeError('needs JOB_COMPLETION_INDEX, which an indexed Job sets');
  const shard = { number: which === 'job' ? Number(index) + 1 : Number(which), of: Number(of) };
  if (shard.of < 1 || shard.of > MOST) throw new RangeError(`must be one of 1 to ${MOST} shards`);
  if (shard.number < 1 || shard.number > shard.of)
    throw new RangeError(`must be from 1/${of} to ${of}/${of}`);
  return shard;
}

/** Whether a user belongs to a shard: each belongs to one of them, whoever else there is. */
export function isInShard(user: string, { number, of }: Shard): boolean {
  return (parseInt(hash('sha256', user, 'hex').slice(0, 12), 16) % of) + 1 === number;
}

/** Its folder below the output's: `shard-03-of-16`. */
export function shardFolder({ number, of }: Shard): string {
  return `shard-${String(number).padStart(String(of).length, '0')}-of-${of}`;
}

/** The shard whose folder has this name, or null. */
export function shardOf(folder: string): Shard | null {
  const [, number, of] = FOLDER.exec(folder) ?? [];
  return number === undefined ? null : { number: Number(number), of: Number(of) };
}
