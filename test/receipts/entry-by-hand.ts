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

/** The same, of what the answer to a delivery promised. */
export function entryOfAnswer({ id, body }: Pick<Promised, 'id' | 'body'>, receipt: string): string {
  const [, salt = '', received = ''] = /salt="([\w-]{22})", received=(\d+)$/.exec(receipt) ?? [];
  return entryByHand({ id, body, salt: Buffer.from(salt, 'base64url'), received }).toString('base64');
}
