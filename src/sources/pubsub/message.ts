import type { IncomingMessage } from '../../core/ingest.ts';
import { encodingIn } from '../take.ts';

/** What is used of the SDK's message. */
interface Received {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  readonly publishTime: Date;
}

/** The message as it lies in the subscription: still compressed, with the attributes its publisher gave it. */
export function toIncoming({ data, attributes, publishTime }: Received): IncomingMessage {
  return {
    body: data,
    encoding: encodingIn(attributes, 'blob-codec'),
    properties: { ...attributes },
    receivedAt: publishTime.getTime(),
  };
}
