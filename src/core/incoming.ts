/** One message as a broker hands it over; nothing of it has been checked yet. */
export interface IncomingMessage {
  /** As it lies in the broker, compressed or not. */
  readonly body: Buffer;
  /** `gzip`, another encoding by the publisher's name for it, or null for none. */
  readonly encoding: string | null;
  /** Application properties or attributes, by the publisher's names (hyphens or underscores). */
  readonly properties: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch when the broker took it. */
  readonly receivedAt: number;
}

type Properties = IncomingMessage['properties'];

/** What a publisher says under a name in hyphens; older ones wrote underscores. */
export function saidIn(properties: Properties, name: string): string | undefined {
  return properties[name] ?? properties[name.replaceAll('-', '_')];
}

/** @param name of the property that says it */
export function encodingIn(properties: Properties, name: string): IncomingMessage['encoding'] {
  return saidIn(properties, name)?.toLowerCase() || null;
}
