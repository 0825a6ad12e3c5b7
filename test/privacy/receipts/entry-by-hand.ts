import { createHash } from 'node:crypto';

export interface Promised {
  readonly id: string;
  readonly body: Buffer;
  readonly salt: Buffer;
  /** Milliseconds since the epoch. */
  readonly received: number | bigint | string;
}

/** An event's entry in a log of receipts, as the documentation says it, in code of its own. */
export function entryByHand({ id, body, salt, received }: Promised): Buffer {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(received));
  return createHash('sha256')
    .update('millrace receipt v1\n')
    .update(salt)
    .update(time)
    .update(createHash('sha256').update(body).digest())
    .update(id)
    .digest();
}
