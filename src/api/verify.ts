/** The signature schemes of the receiver; and signing, for tests of what verifies. */
export type {
  Precheck,
  Refusal,
  RefusalCode,
  RequestHeaders,
  Verification,
  Verifier,
} from '../core/verifier.ts';
export type { HmacOptions } from '../verify/hmac.ts';
export { createVerifier, SCHEMES, type Scheme, type SigningOptions } from '../verify/registry.ts';
export { signStandardWebhooks } from '../verify/sign-standard-webhooks.ts';
