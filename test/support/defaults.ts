import { CONFIG } from '../../src/config/schema.ts';

/** What a config says where it says nothing. */
export const { envelope: ENVELOPE, server: SERVER } = CONFIG.parse({});
