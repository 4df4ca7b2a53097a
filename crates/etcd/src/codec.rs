//! Messages of gRPC as bytes: prost's, for the client of tonic.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encodes messages of one type, and decodes those of another.
pub(crate) struct MessageCodec<Q, A>(PhantomData<(Q, A)>);

/// Encodes messages.
pub(crate) struct MessageEncoder<Q>(PhantomData<Q>);

/// Decodes messages.
pub(crate) struct MessageDecoder<A>(PhantomData<A>);

impl<Q, A> MessageCodec<Q, A> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<Q, A> Codec for MessageCodec<Q, A>
where
    Q: Message + Send + 'static,
    A: Message + Default + Send + 'static,
{
    type Encode = Q;
    type Decode = A;
    type Encoder = MessageEncoder<Q>;
    type Decoder = MessageDecoder<A>;

    fn encoder(&mut self) -> MessageEncoder<Q> {
        MessageEncoder(PhantomData)
    }

    fn decoder(&mut self) -> MessageDecoder<A> {
        MessageDecoder(PhantomData)
    }
}

impl<Q: Message> Encoder for MessageEncoder<Q> {
    type Item = Q;
    type Error = Status;

    fn encode(&mut self, message: Q, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        message.encode(into).map_err(|error| Status::internal(error.to_string()))
    }
}

impl<A: Message + Default> Decoder for MessageDecoder<A> {
    type Item = A;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<A>, Status> {
        A::decode(from).map(Some).map_err(|error| Status::internal(error.to_string()))
    }
}
