/** What one request, one connection and all of them together may take. Times are milliseconds, sizes bytes. */
export interface ReceiverLimits {
  /** Largest body, before and after decompression. */
  readonly maxBodyBytes: number;
  /**
   * Bytes that a byte of a compressed body may become; one that becomes at most 64 KiB is taken whatever its ratio. What
   * is inside has not been verified yet.
   */
  readonly maxDecompressionRatio: number;
  /** Work, in bytes read, decompressed or hashed, that an address may cause in a minute with what is not authentic; 0 is no bound. */
  readonly unverifiedBytes: number;
  /** Proxies in front, each of which adds an address to X-Forwarded-For. */
  readonly trustedProxies: number;
  /** All bodies in memory at once; above it new ones are answered 503, so that many senders cannot exhaust it. */
  readonly maxBufferedBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** Requests on one connection before it is closed; 0 is no limit. */
  readonly maxRequestsPerSocket: number;
  /** For the headers to arrive. */
  readonly headersTimeout: number;
  /** From the end of the headers to the end of the body; then 408. */
  readonly bodyTimeout: number;
  /** From the end of the headers to the answer; then 503. Senders give up after 15 s, so the body's time is part of it. */
  readonly answerTimeout: number;
  /** What Retry-After says in a 503 where nobody knows better. */
  readonly retryAfter: number;
  /** An idle connection is kept this long; longer than the 60 s of common load balancers, who should close first. */
  readonly keepAliveTimeout: number;
  /** How often node looks for connections that are over `headersTimeout`. */
  readonly checkInterval: number;
  /** After an answer to a body that was not read: how long the sender has to notice before its socket is destroyed. */
  readonly lingerTimeout: number;
}

export const DEFAULT_LIMITS: ReceiverLimits = {
  maxBodyBytes: 10 * 1024 * 1024,
  maxDecompressionRatio: 100,
  unverifiedBytes: 8 * 1024 * 1024,
  trustedProxies: 0,
  maxBufferedBytes: 256 * 1024 * 1024,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 10_000,
  maxRequestsPerSocket: 0,
  headersTimeout: 10_000,
  bodyTimeout: 8000,
  answerTimeout: 10_000,
  retryAfter: 10_000,
  keepAliveTimeout: 65_000,
  checkInterval: 1000,
  lingerTimeout: 1000,
};
