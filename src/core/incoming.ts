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
