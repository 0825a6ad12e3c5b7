export * from '@prometheus-io/client';

/** What is measured of Node itself would be real time, ten times a second, and nobody ends it with a life. */
export function collectDefaultMetrics(): void {}
