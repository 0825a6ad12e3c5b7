import type { RawRecord } from '../../src/journal/kafka/record.ts';
import type { Message } from '../../src/vendors/kafka/message.ts';

/** A written message as a record that was read. */
export function asRead<T extends Message>({ headers, ...message }: T): Omit<T, 'headers'> & RawRecord {
  return { ...message, headers: headers.map(([name, text]) => [name, Buffer.from(text)] as const) };
}
