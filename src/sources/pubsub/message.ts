import type { IncomingMessage } from '../../core/incoming.ts';

/** What is used of the SDK's message. */
interface Received {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  readonly publishTime: Date;
}

/** The message as it lies in the subscription: still compressed, with the attributes its publisher gave it. */
export function toIncoming({ data, attributes, publishTime }: Received): IncomingMessage {
  // Older publishers wrote underscores.
  const encoding = attributes['blob-codec'] ?? attributes['blob_codec'] ?? '';
  return {
    body: data,
    encoding: encoding === '' ? null : encoding.toLowerCase(),
    properties: { ...attributes },
    receivedAt: publishTime.getTime(),
  };
}
